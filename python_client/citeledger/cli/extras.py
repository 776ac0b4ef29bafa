"""Says in one line what to install when a command needs more than the command line itself."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from .exits import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def require_extra(extra: str, *modules: str) -> None:
    """End the command unless all modules of an extra of the package can be imported."""
    require_extras({extra: modules})


def require_extras(extras: Mapping[str, Sequence[str]]) -> None:
    """End the command unless all modules of all these extras can be imported."""
    missing = sorted(
        extra
        for extra, modules in extras.items()
        if any(find_spec(module) is None for module in modules)
    )
    if missing:
        names = ("extra " if len(missing) == 1 else "extras ") + " and ".join(missing)
        msg = (
            f"this needs the {names}: in the folder of citeledger, run "
            f"pip install '.[{','.join(missing)}]'"
        )
        raise CommandError(msg)
