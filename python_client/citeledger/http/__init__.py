"""The HTTP door, the extra ``citeledger[http]``: the live check, and the pages to read it in."""

from .app import create_app
from .principal import JwtPrincipal, Principal
from .sign_in import Person, SignIn

__all__ = ["JwtPrincipal", "Person", "Principal", "SignIn", "create_app"]
