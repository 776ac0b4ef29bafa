"""An installation of the first release, with data of every table in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from support.deploy import REPOSITORY, checked, sqitch
from support.filled import contents, fill
from support.records import put_pages
from support.server import DEPLOYER, Server
from support.world import World, set_context

OLD = "0.1.0"
NEW = "0.2.0"
# A resolver's address with more behind the DOI than a DOI has room for.
LONG_DOI = "https://doi.org/10.1000/cited?" + "utm_source=a-long-tail&" * 8
QUOTE = "ninety days"


@dataclass(frozen=True, slots=True)
class Installation:
    """A database with a release of the package, and what is in it."""

    server: Server
    name: str
    firms: tuple[UUID, ...]

    def connect(self, user: str = "postgres", **kwargs: Any) -> psycopg.Connection[Any]:
        """Open a connection; the caller closes it."""
        return self.server.connect(user, self.name, **kwargs)


def fill_with_long_dois(superuser: psycopg.Connection[Any]) -> tuple[UUID, ...]:
    """Make firms with rows in every table, each with an edge whose DOI has a long tail."""
    firms = fill(superuser)
    for firm in firms:
        world = World(superuser, firm)
        matter = world.project()
        citing = world.document(matter, title="Citing", doi="10.1000/citing")
        for doi in ("10.1000/cited", "10.1000/second"):
            world.document(title="Cited", doi=doi)
        put_pages(superuser, firm, citing, {1: ["Lease", f"Notice of {QUOTE}."]})
        with superuser.transaction():
            set_context(superuser, firm)
            superuser.execute(
                "select citeledger.record_references(%s, %s)",
                (citing, [LONG_DOI, "doi:10.1000/second", "10.1000/absent", "no DOI"]),
            )
    return tuple(firms)


def release_sql(release: str) -> str:
    """Return the installation file as a release had it, made from the plan."""
    return checked(
        subprocess.run(
            [sys.executable, "tools/build_sql.py", "--release", release],
            check=False,
            cwd=REPOSITORY,
            capture_output=True,
            encoding="utf-8",
        )
    ).stdout


def with_sqitch(server: Server, name: str, _folder: Path) -> None:
    checked(sqitch(server, name, "deploy", "--verify", "--to-change", f"@v{OLD}"))


def with_one_file(server: Server, name: str, folder: Path) -> None:
    file = folder / "citeledger.sql"
    file.write_text(release_sql(OLD), encoding="utf-8")
    checked(server.psql("-q", "-1", "-f", str(file), user=DEPLOYER, dbname=name))


@pytest.fixture(scope="session")
def templates(
    server: Server, deployed: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Installation]]:
    """Install the first release in each way and fill it; ``deployed`` has given the roles."""
    folder = tmp_path_factory.mktemp("release")
    with ExitStack() as databases:
        made = {}
        for way, install in (("sqitch", with_sqitch), ("one file", with_one_file)):
            name = databases.enter_context(server.database())
            install(server, name, folder)
            with server.connect(dbname=name, autocommit=True) as superuser:
                made[way] = Installation(server, name, fill_with_long_dois(superuser))
        yield made


@pytest.fixture
def installed(templates: dict[str, Installation]) -> Iterator[Callable[[str], Installation]]:
    """Give a maker of copies of the installations."""
    with ExitStack() as copies:

        def make(way: str) -> Installation:
            origin = templates[way]
            name = copies.enter_context(origin.server.database(template=origin.name))
            return Installation(origin.server, name, origin.firms)

        yield make


def upgrade(installation: Installation, way: str) -> subprocess.CompletedProcess[str]:
    """Bring an installation to the newest version, as its DBA would."""
    if way == "sqitch":
        return sqitch(installation.server, installation.name, "deploy", "--verify")
    return installation.server.psql(
        "-q",
        "-f",
        str(REPOSITORY / f"sql/upgrade--{OLD}--{NEW}.sql"),
        user=DEPLOYER,
        dbname=installation.name,
    )


def rows(installation: Installation) -> dict[str, list[str]]:
    """Return every row of every table as text."""
    return contents(installation.server.dsn(dbname=installation.name))
