"""The tools of the repository, which are scripts and of no package."""

from __future__ import annotations

import sys
from importlib import util
from types import ModuleType

from .deploy import REPOSITORY


def tool(name: str) -> ModuleType:
    """Import a tool, once."""
    if name not in sys.modules:
        spec = util.spec_from_file_location(name, REPOSITORY / "tools" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
