"""The pgTAP suites under settings that somebody's server may have, and in other locales.

A server of CI runs a selection; the fetched ones of the whole matrix run every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from support.deploy import deploy_with_psql
from support.pgtap import TAP_SCHEMA, TESTER, install_pgtap, prove
from support.plan import verify_with_psql
from support.server import DEPLOYER, FETCHED, Server, server_kind

if TYPE_CHECKING:
    from conftest import Database

SUITES = Path(__file__).resolve().parents[1] / "pgtap"
ALL = sorted(SUITES.rglob("*.sql"))
# Every way by which a function reads, compares, counts or walks.
SOME = [
    SUITES / f"{name}.sql"
    for name in (
        "cite/drift", "cite/suggest", "gate/late_sources", "gate/verdict", "graph/doi",
        "graph/resolution", "graph/stage", "graph/walk", "ledger/trace", "owner/integrity",
        "tenancy/context",
    )
]  # fmt: skip

# How values look as text, and when it is.
ELSEWHERE = {
    "timezone": "Asia/Kathmandu",
    "datestyle": "German, DMY",
    "intervalstyle": "sql_standard",
    "extra_float_digits": "0",
    "bytea_output": "escape",
    "transform_null_equals": "on",
    "xmloption": "document",
}
# Plans that nobody would choose: what a function returns is no matter of the plan. Their estimates
# are so high that every one of them would be compiled.
LOOPS = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "enable_sort": "off",
    "enable_hashagg": "off",
    "enable_material": "off",
}
SCANS = {
    "jit": "off",
    "plan_cache_mode": "force_custom_plan",
    "enable_nestloop": "off",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "work_mem": "64kB",
}
# Whatever says that it is parallel safe is run by a worker.
PARALLEL = {
    "parallel_setup_cost": "0",
    "parallel_tuple_cost": "0",
    "min_parallel_table_scan_size": "0",
    "max_parallel_workers_per_gather": "1",
}
STRINGS = {"standard_conforming_strings": "off", "escape_string_warning": "off"}
ISOLATION = {"default_transaction_isolation": "repeatable read"}

# These need no verdict and write no graph, which only READ COMMITTED can give.
ANY_ISOLATION = [
    SUITES / f"{name}.sql"
    for name in (
        "cite/access", "cite/cite", "cite/cite_many", "cite/drift", "cite/pages", "cite/recheck",
        "cite/span_form", "cite/suggest", "gate/isolation_level", "gate/tiers", "graph/doi",
        "graph/isolation_level", "ledger/checks", "ledger/mapping", "ops/structure", "ops/version",
        "owner/checks", "owner/metadata_only", "owner/pages", "tenancy/permissions",
        "tenancy/privileges",
    )
]  # fmt: skip


def without_backslashes(files: Iterable[Path]) -> list[Path]:
    """Leave out test files whose own texts would mean something else."""
    return [file for file in files if "\\" not in file.read_text(encoding="utf-8")]


def few(files: list[Path]) -> list[Path]:
    """Return what there is time for."""
    return files if server_kind() in FETCHED else [file for file in files if file in SOME]


PROFILES = {
    "elsewhere": (ELSEWHERE, ALL),
    "loops": (LOOPS, few(ALL)),
    "scans": (SCANS, few(ALL)),
    "parallel": (PARALLEL, SOME),
    "backslashes": (STRINGS, few(without_backslashes(ALL))),
    "repeatable read": (ISOLATION, ANY_ISOLATION),
}


def change(server: Server, dbname: str, settings: dict[str, str]) -> None:
    """Give a database settings of its own, which every new session has."""
    with server.connect(autocommit=True) as superuser:
        for name, value in settings.items():
            superuser.execute(
                sql.SQL("alter database {} set {} = {}").format(
                    sql.Identifier(dbname),
                    sql.SQL(name),
                    sql.SQL(", ").join(map(sql.Literal, value.split(", "))),
                )
            )
        superuser.execute(
            sql.SQL("alter role {} in database {} set search_path = {}").format(
                *map(sql.Identifier, (DEPLOYER, dbname, TAP_SCHEMA))
            )
        )


def assert_passes(server: Server, dbname: str, files: list[Path]) -> None:
    assert files
    for user in (TESTER, DEPLOYER):
        theirs = [f for f in files if (f.parent.name == "owner") == (user == DEPLOYER)]
        if theirs:
            done = prove(server, dbname, *theirs, user=user)
            if done.returncode != 0 or "Result: PASS" not in done.stdout:
                failed = re.findall(r"^not ok .*\n(?:#.*\n)*", done.stdout, flags=re.MULTILINE)
                summary = done.stdout[done.stdout.find("Test Summary Report") :]
                pytest.fail(f"{''.join(failed)}\n{summary}\n{done.stderr}")


@pytest.mark.parametrize(("settings", "files"), PROFILES.values(), ids=PROFILES)
def test_under_settings(deployed: Database, settings: dict[str, str], files: list[Path]) -> None:
    server = deployed.server
    if settings is PARALLEL:
        # It got a better name.
        always = "debug_parallel_query" if server.major >= 16 else "force_parallel_mode"
        settings = {**settings, always: "on"}
    with server.database(template=deployed.name) as dbname:
        change(server, dbname, settings)
        with server.connect(TESTER, dbname) as tester:
            for name, value in settings.items():
                found = tester.execute("select current_setting(%s)", (name,)).fetchone()
                assert found == (value,), name
        assert_passes(server, dbname, files)


@contextmanager
def database_in(server: Server, locale: str) -> Iterator[str]:
    """Give a database whose default collation is a language's, where the server has ICU."""
    with server.connect(autocommit=True) as superuser:
        name = f"in_{locale.partition('-')[0]}"
        try:
            superuser.execute(
                sql.SQL(
                    "create database {} owner {} template template0"
                    " locale_provider icu icu_locale {}"
                ).format(sql.Identifier(name), sql.Identifier(DEPLOYER), sql.Literal(locale))
            )
        except psycopg.errors.FeatureNotSupported as error:
            pytest.skip(f"{server.kind}: {error.diag.message_primary}")
    try:
        yield name
    finally:
        server.drop_database(name)


@pytest.mark.parametrize("locale", ["tr-TR", "de-DE"])
def test_in_another_language(deployed: Database, locale: str) -> None:
    """Turkish has an I of its own, and German sorts ä with a: neither is for us to know."""
    server = deployed.server
    with database_in(server, locale) as dbname:
        deploy_with_psql(server, dbname)
        with server.connect(dbname=dbname, autocommit=True) as superuser:
            provider = superuser.execute(
                "select datlocprovider from pg_database where datname = current_database()"
            ).fetchone()
            assert provider == ("i",)
            install_pgtap(superuser)
        verify_with_psql(server, dbname)
        change(server, dbname, {})
        assert_passes(server, dbname, ALL if server_kind() in FETCHED else SOME)
