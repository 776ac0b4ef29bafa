"""``citeledger deploy`` and ``citeledger status``: the schema without Sqitch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from citeledger._version import SUPPORTED_SCHEMA, __version__

from . import deployment
from .connection import DatabaseUrl, connected
from .exits import CommandError, Exit
from .output import AsJson, print_facts, print_json, print_line

if TYPE_CHECKING:
    import psycopg

    from .deployment import Installation

# One deployment at a time in a database; the number is only this program's own.
_ONE_AT_A_TIME = "select pg_catalog.pg_advisory_xact_lock(7306086815)"


def deploy(
    upgrade: Annotated[
        bool,
        typer.Option("--upgrade", help="Bring an older version up to the one of this release."),
    ] = False,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Install the schema from the file in the package, in one transaction, or upgrade it.

    For databases where Sqitch is not wanted. The role must own the database, or may create schemas
    in it, and have CREATEROLE where the citeledger roles are absent; a superuser is not needed. A
    database that Sqitch manages is never touched, nor is an installed version without --upgrade.

    Examples:

        citeledger deploy
        citeledger deploy --upgrade
    """
    with connected(database_url) as connection:
        with connection.transaction():
            connection.execute(_ONE_AT_A_TIME)
            found = deployment.inspect(connection)
            deployment.require_server(found)
            done = _deploy(connection, found, upgrade=upgrade)
        if done is None:
            # Not in one transaction: each part of an upgrade has its own, so that locks are short.
            done = _upgrade(connection, found)
    if as_json:
        print_json({"version": deployment.bundled_version(), "done": done})
    else:
        print_line(f"citeledger {deployment.bundled_version()}: {done}.")


def _upgrade(connection: psycopg.Connection[Any], found: Installation) -> str:
    if found.version is None:
        raise AssertionError
    steps = deployment.upgrade(connection, found.version, deployment.bundled_version())
    return "upgraded " + ", ".join(f"from {old} to {to}" for old, to in steps)


def _deploy(
    connection: psycopg.Connection[Any], found: Installation, *, upgrade: bool
) -> str | None:
    """Say what was done; None when an upgrade is to be done."""
    new = deployment.bundled_version()
    there = f"citeledger {found.version} is installed" if found.version else "it has no citeledger"
    if found.managed_by == "sqitch":
        msg = f"Sqitch manages this database ({there}); nothing was changed"
        raise CommandError(
            msg,
            code=Exit.REFUSED,
            hint="Deploy and upgrade it with sqitch deploy.",
        )
    if found.managed_by == "unknown":
        raise CommandError(
            "there is a registry of Sqitch that this role may not read, which may be citeledger's; "
            "nothing was changed",
            code=Exit.REFUSED,
            hint="Deploy as the role that deployed before.",
        )
    if not found.schema:
        deployment.install(connection)
        return "installed"
    if found.version is None:
        raise CommandError(
            "there is a schema citeledger that is not of this package; nothing was changed",
            code=Exit.REFUSED,
        )
    if found.version == new:
        return "already installed"
    if upgrade:
        return None
    known = deployment.upgrade_path(found.version, new, deployment.upgrade_scripts())
    msg = f"{there}, and this release has {new}; nothing was changed"
    raise CommandError(
        msg,
        code=Exit.NO,
        hint="Run: citeledger deploy --upgrade"
        if known
        else "This release has no upgrade from there; take the release that belongs to the schema.",
    )


def _next(found: Installation) -> str | None:
    """Return the command that brings the schema of this release, where deploy would run it."""
    new = deployment.bundled_version()
    if found.managed_by in ("sqitch", "unknown"):
        return None
    if not found.schema:
        return "citeledger deploy"
    if found.version is None or found.version == new:
        return None
    known = deployment.upgrade_path(found.version, new, deployment.upgrade_scripts())
    return "citeledger deploy --upgrade" if known else None


def status(database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Say which version of the schema is installed, by what, and whether this client knows it.

    The exit code is 1 when it is not installed, or when the client does not know the version.

    Example:

        citeledger status
    """
    with connected(database_url) as connection:
        found = deployment.inspect(connection)
    known = found.version in SUPPORTED_SCHEMA
    if as_json:
        print_json(
            {
                "installed": found.version is not None,
                "schema_version": found.version,
                "managed_by": found.managed_by,
                "client_version": __version__,
                "client_knows_schema": known,
                "server_version": found.server_version,
            }
        )
    else:
        print_facts(
            (
                ("schema", found.version or "not installed"),
                ("installed by", found.managed_by if found.schema else None),
                ("client", __version__),
                ("known to this client", ("yes" if known else "no") if found.version else None),
                ("server", f"PostgreSQL {found.server_version}"),
                ("next", _next(found)),
            )
        )
    if not known:
        raise typer.Exit(Exit.NO)
