"""A plugin of pytest that profiles the package's functions in every database of a run.

tools/coverage.py loads it (``-p static.profile_plugin``) and names the file to write in
CITELEDGER_PROFILE. The profiler of plpgsql_check keeps its counts in shared memory when it is
preloaded, for each database apart; so they are fetched whenever the tests drop a database.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from support.server import Server

_SETTINGS = (
    " -c shared_preload_libraries=plpgsql,plpgsql_check"
    " -c plpgsql_check.profiler=on"
    " -c plpgsql_check.profiler_max_shared_chunks=50000"
)

_STATEMENTS = """
select
  f.oid::regprocedure::text, md5(f.prosrc),
  s.stmtid, s.parent_stmtid, s.parent_note, s.lineno, s.stmtname, s.exec_stmts
from pg_catalog.pg_proc as f
join pg_catalog.pg_language as l on l.oid = f.prolang and l.lanname = 'plpgsql'
cross join lateral profile.plpgsql_profiler_function_statements_tb(f.oid::regprocedure) as s
where f.pronamespace in (
  select n.oid from pg_catalog.pg_namespace as n
  where n.nspname in ('citeledger', 'citeledger_private')
)
"""

_drop_database = Server.drop_database


def _fetch(server: Server, name: str) -> None:
    with server.connect(dbname=name, autocommit=True) as connection:
        connection.execute("set plpgsql_check.profiler = off")
        connection.execute("create schema if not exists profile")
        connection.execute("create extension if not exists plpgsql_check schema profile")
        rows = connection.execute(_STATEMENTS).fetchall()
        # The memory is for the databases that are there, and this one goes.
        connection.execute(
            "select profile.plpgsql_profiler_reset(f.oid::regprocedure)"
            " from pg_catalog.pg_proc as f"
            " join pg_catalog.pg_namespace as n on n.oid = f.pronamespace"
            " where n.nspname in ('citeledger', 'citeledger_private')"
        )
    with Path(os.environ["CITELEDGER_PROFILE"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(rows) + "\n")


def _fetch_and_drop(self: Server, name: str) -> None:
    with self.connect(autocommit=True) as superuser:
        # Whoever is still at work there would be ended by the drop; its counts need it ended first.
        superuser.execute(
            "select pg_catalog.pg_terminate_backend(a.pid, 5000)"
            " from pg_catalog.pg_stat_activity as a where a.datname = %s",
            (name,),
        )
        there = superuser.execute(
            "select from pg_catalog.pg_database as d where d.datname = %s", (name,)
        ).rowcount
    if there:
        _fetch(self, name)
    _drop_database(self, name)


def pytest_configure(config: Any) -> None:
    """Preload the profiler into the server, and fetch its counts before a database goes."""
    from testing.postgresql import Postgresql

    original = Postgresql.__init__

    def preloading(self: Any, **kwargs: Any) -> None:
        kwargs["postgres_args"] += _SETTINGS
        original(self, **kwargs)

    Postgresql.__init__ = preloading
    Server.drop_database = _fetch_and_drop  # type: ignore[method-assign]
