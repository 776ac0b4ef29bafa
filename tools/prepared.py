"""A server with the package deployed, for the tools that need one; and its pgTAP files.

It is the server of the tests (Debian's, or the embedded 18 by CITELEDGER_SERVER=embedded), so a
tool finds the same roles, logins and pgTAP that ``make test`` uses, and leaves nothing behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from psycopg import sql

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python_client")]

from conftest import LOGINS  # noqa: E402
from support.deploy import deploy_with_psql  # noqa: E402
from support.pgtap import TAP_SCHEMA, TESTER, install_pgtap  # noqa: E402
from support.server import DEPLOYER, Server, running_server  # noqa: E402

PGTAP = ROOT / "tests" / "pgtap"


@contextmanager
def prepared_server(settings: Sequence[str] = ()) -> Iterator[tuple[Server, str]]:
    """Run a server with a deployed database, which may serve as a template; give both."""
    os.environ.setdefault("CITELEDGER_SERVER", "debian")
    with running_server() as server:
        with server.connect(autocommit=True) as superuser:
            superuser.execute(f"create role {DEPLOYER} login nosuperuser createrole nobypassrls")
            for login in LOGINS:
                superuser.execute(
                    sql.SQL("create role {} login nosuperuser nobypassrls nocreaterole").format(
                        sql.Identifier(login)
                    )
                )
            for setting in settings:
                superuser.execute(f"alter system set {setting}")
            superuser.execute("select pg_catalog.pg_reload_conf()")
        name = server.create_database("citeledger_prepared")
        deploy_with_psql(server, name)
        with server.connect(autocommit=True) as superuser:
            for login, roles in LOGINS.items():
                for role in roles:
                    superuser.execute(f"grant {role} to {login}")
        with server.connect(dbname=name, autocommit=True) as superuser:
            install_pgtap(superuser)
        yield server, name


def prove(server: Server, dbname: str, *files: Path) -> subprocess.CompletedProcess[str]:
    """Run pgTAP files of one folder: those of owner/ as the deployer, others as the tester."""
    user = DEPLOYER if files[0].parent.name == "owner" else TESTER
    environment = server.environment(user, dbname) | {
        "PGOPTIONS": f"-c search_path={TAP_SCHEMA} -c client_min_messages=error"
    }
    return subprocess.run(
        ["pg_prove", "--psql-bin", str(server.bin_dir / "psql"), *map(str, files)],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=environment,
    )
