"""``python -m citeledger.cli``: the command line, where its script is not on the path."""

import sys

from . import main

sys.exit(main())
