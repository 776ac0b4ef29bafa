"""How fast citeledger is, as ratios to floors and peers: ``python -m bench``."""
