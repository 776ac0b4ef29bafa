"""Says in one line what to install when a command needs more than the command line itself."""

from __future__ import annotations

from importlib.util import find_spec

from .exits import CommandError


def require_extra(extra: str, *modules: str) -> None:
    """End the command unless all modules of an extra of the package can be imported."""
    if any(find_spec(module) is None for module in modules):
        msg = f"this needs an extra: pip install 'citeledger[{extra}]'"
        raise CommandError(msg)
