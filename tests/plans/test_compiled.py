"""No statement of a hot call is compiled, however dear the planner takes it to be."""

from __future__ import annotations

import pytest

from .conftest import Loaded
from .test_hot_statements import HOT

EVERYTHING = ("jit_above_cost", "jit_inline_above_cost", "jit_optimize_above_cost")


@pytest.fixture
def compiling(loaded: Loaded) -> Loaded:
    """Let the server compile whatever it may."""
    if not loaded.one("select pg_jit_available()"):
        pytest.skip("this server cannot compile plans")
    return loaded


@pytest.mark.parametrize("call", HOT)
def test_what_a_hot_call_runs_is_not_compiled(compiling: Loaded, call: str) -> None:
    hot = HOT[call]
    arguments = [compiling.one(query) for query in hot.arguments]
    connection = compiling.connection
    # What the session keeps was planned before.
    connection.execute("discard plans")
    with connection.transaction(force_rollback=True):
        for setting in EVERYTHING:
            connection.execute(f"set local {setting} = 0")
        connection.execute("set local jit = on")
        plans = compiling.plans_of(hot.role, hot.statement, *arguments)
    assert len(plans.heard) > 1
    # The caller's own statement may be, and the checks of its foreign keys.
    own = (hot.statement.partition("%s")[0], "SELECT 1 FROM ONLY")
    assert [text for text in plans.compiled if not text.startswith(own)] == []
