"""The HTTP door, the extra ``citeledger[http]``: one click from a citation to its live check."""

from .app import create_app
from .principal import JwtPrincipal, Principal

__all__ = ["JwtPrincipal", "Principal", "create_app"]
