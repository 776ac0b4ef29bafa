"""What the documented backup role dumps is restored whole: here, elsewhere, on a newer version."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg import sql

from support.deploy import REPOSITORY, checked, sqitch
from support.dump import is_empty, schema_dump
from support.filled import contents, problems
from support.plan import verify_with_psql
from support.server import DEPLOYER, Server
from support.world import World

from .conftest import Original, settings_free

ROLES = REPOSITORY / "deploy" / "tenancy" / "roles.sql"
FORMATS = {"plain": "-Fp", "whole": "-Fc", "in sections": "-Fd", "in parallel": "-Fd"}


def dump(original: Original, user: str, file: Path, form: str = "whole") -> Path:
    checked(
        original.server.program(
            "pg_dump", FORMATS[form], "-f", str(file), user=user, dbname=original.dbname
        )
    )
    return file


def restore(server: Server, dbname: str, file: Path, form: str = "whole") -> None:
    """Restore, as the deployer where that is possible, who is no superuser."""
    if form == "plain":
        script = file.read_text(encoding="utf-8")
        if server.major < 17:
            # What a pg_dump of a newer version sets, and this server does not have.
            script = script.replace("SET transaction_timeout = 0;\n", "")
        checked(server.psql("-q", "-1", stdin=script, user=DEPLOYER, dbname=dbname))
    elif form == "whole":
        server.restore(dbname, "--single-transaction", str(file))
    elif form == "in sections":
        # Triggers, foreign keys and row security come last, in their order; rows have none.
        jobs = ("-j", "2") if server.has_own_programs else ()
        for section, more in (("pre-data", ()), ("data", jobs), ("post-data", ())):
            server.restore(dbname, f"--section={section}", *more, str(file))
    else:
        if not server.has_own_programs:
            pytest.skip(f"pg_restore is of another version than {server.version}")
        # Row security may come before the foreign keys that read the rows: not for the deployer.
        server.restore(dbname, "-j", "2", str(file), user="postgres")


def assert_whole(server: Server, dbname: str, original: Original) -> None:
    """The rows, the schema and Sqitch's record are the original's, and all of it works."""
    assert contents(server.dsn(dbname=dbname)) == original.rows
    verify_with_psql(server, dbname)
    with settings_free(server.dsn(dbname=dbname)) as superuser:
        superuser.execute(sql.SQL("reindex database {}").format(sql.Identifier(dbname)))
        superuser.execute("vacuum (analyze)")
    with server.connect(dbname=dbname, autocommit=True) as superuser:
        assert problems(superuser) == []
        world = World.make(superuser, "A firm that came after")
        message = world.turn(world.project())
        world.citation(message, None)
        superuser.execute(
            "update citeledger.messages set finalized_at = now() where id = %s", (message,)
        )
        found = superuser.execute(
            "select gate_status from citeledger.work_product_fiduciary_gate where message_id = %s",
            (message,),
        )
        assert found.fetchone() == ("flagged",)


@pytest.mark.parametrize(
    ("user", "more", "says"),
    [
        (DEPLOYER, (), 'query would be affected by row-level security policy for table "chats"'),
        (
            DEPLOYER,
            ("--role=citeledger_owner", "--schema=citeledger"),
            'query would be affected by row-level security policy for table "chats"',
        ),
        ("t_admin", ("--schema=citeledger",), "permission denied for table"),
        ("t_app", ("--schema=citeledger",), "permission denied for table"),
    ],
    ids=["the deployer", "the owner", "an operator", "an application"],
)
def test_nobody_else_can_dump(
    original: Original, tmp_path: Path, user: str, more: tuple[str, ...], says: str
) -> None:
    """Rather no dump than one that silently lacks rows."""
    done = original.server.program(
        "pg_dump", *more, "-f", str(tmp_path / "dump"), user=user, dbname=original.dbname
    )
    assert done.returncode != 0
    assert says in done.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_restore_beside_the_original(
    original: Original, backup: str, tmp_path: Path, form: str
) -> None:
    """Into another database of the cluster, by the deployer."""
    server = original.server
    file = dump(original, backup, tmp_path / "dump", form)
    with server.database() as dbname:
        restore(server, dbname, file, form)
        assert schema_dump(server, dbname) == schema_dump(server, original.dbname)
        assert_whole(server, dbname, original)
    assert contents(server.dsn(dbname=original.dbname)) == original.rows


def test_into_a_cluster_of_the_newest_version(
    original: Original, backup: str, newest: Server, tmp_path: Path
) -> None:
    """Without the roles nothing is restored; the deployer makes them, and all of it is there."""
    file = dump(original, backup, tmp_path / "dump")
    with newest.database() as dbname:
        done = newest.program(
            "pg_restore", "--single-transaction", "-d", dbname, str(file), user=DEPLOYER
        )
        assert done.returncode != 0
        assert 'role "citeledger_owner" does not exist' in done.stderr
        assert is_empty(schema_dump(newest, dbname))

        checked(newest.psql("-q", "-f", str(ROLES), user=DEPLOYER, dbname=dbname))
        restore(newest, dbname, file)
        assert_whole(newest, dbname, original)
        # Sqitch's own record was restored too.
        checked(sqitch(newest, dbname, "verify"))
        checked(sqitch(newest, dbname, "revert", "-y"))
        assert is_empty(schema_dump(newest, dbname))


def test_the_roles_of_a_whole_cluster(
    original: Original, backup: str, newest: Server, tmp_path: Path
) -> None:
    """The roles and who has them come by pg_dumpall, of the newer version."""
    source = original.server
    done = checked(
        newest.program(
            "pg_dumpall",
            *("--roles-only", "--no-role-passwords"),
            *("-h", source.host, "-p", str(source.port)),
            user=backup,
        )
    )
    # The role of whoever makes a cluster is there already; nothing else may fail.
    text = done.stdout.replace("CREATE ROLE postgres;\n", "")
    text = text.replace(f"CREATE ROLE {DEPLOYER};\n", "")
    checked(newest.psql("-q", stdin=text))
    file = dump(original, backup, tmp_path / "dump")
    with newest.database() as dbname:
        restore(newest, dbname, file)
        assert_whole(newest, dbname, original)
    with newest.connect() as superuser:
        found = superuser.execute("select pg_has_role('t_app', 'citeledger_app', 'usage')")
        assert found.fetchone() == (True,)
