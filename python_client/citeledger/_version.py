"""The version of the client, and the schema versions that it knows."""

__version__ = "0.2.0"

SUPPORTED_SCHEMA: frozenset[str] = frozenset({"0.1.0", "0.2.0"})
"""What ``citeledger.version()`` may answer: a client never guesses at a schema it does not know."""
