"""Logical replication of the ledger: the copy is equal, and nothing is written twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from support.deploy import deploy_with_psql
from support.filled import contents, fill, problems
from support.server import DEPLOYER, Server, running_server
from support.world import World

from .conftest import run

REPLICATOR = "citeledger_replicator"
FILTERED = "not_exempt"
SECONDS = 60


def wait_until(fact: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not fact():
        assert time.monotonic() < deadline, f"not in {SECONDS} seconds: {what}"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Server]:
    """Run a cluster that can be a publisher."""
    with running_server(settings={"wal_level": "logical"}) as running:
        run(running, f"create role {DEPLOYER} login nosuperuser createrole nobypassrls")
        run(running, f"create role {REPLICATOR} login replication bypassrls")
        run(running, f"grant pg_read_all_data to {REPLICATOR}")
        run(running, f"create role {FILTERED} login replication")
        run(running, f"grant pg_read_all_data to {FILTERED}")
        yield running


@pytest.fixture
def source(cluster: Server) -> Iterator[str]:
    """Give a filled database whose tables are published."""
    with cluster.database() as dbname:
        deploy_with_psql(cluster, dbname)
        with cluster.connect(dbname=dbname, autocommit=True) as superuser:
            fill(superuser)
            superuser.execute("create publication ledger for tables in schema citeledger")
        yield dbname


@contextmanager
def copied(
    cluster: Server,
    source: str,
    target: Server,
    *,
    options: str = "",
    role: str = REPLICATOR,
) -> Iterator[str]:
    """Give a database with the schema and a subscription; both go at the end."""
    with target.database() as dbname:
        deploy_with_psql(target, dbname)
        # Named, and made beforehand: one cluster that subscribes to itself would wait for itself.
        run(cluster, f"select pg_create_logical_replication_slot('{dbname}', 'pgoutput')", source)
        conninfo = make_conninfo(host=cluster.host, port=cluster.port, user=role, dbname=source)
        try:
            with target.connect(dbname=dbname, autocommit=True) as superuser:
                superuser.execute(
                    sql.SQL(
                        "create subscription {} connection {} publication ledger"
                        " with (create_slot = false, slot_name = {}{})"
                    ).format(
                        sql.Identifier(dbname),
                        sql.Literal(conninfo),
                        sql.Literal(dbname),
                        sql.SQL(options),
                    )
                )
            yield dbname
        finally:
            unsubscribe(cluster, target, dbname)


def unsubscribe(cluster: Server, target: Server, dbname: str) -> None:
    """Drop a subscription, if it is there still, and its slots.

    First everybody leaves. Otherwise, in one cluster, the worker's new slot would wait for the
    transaction that drops the subscription, and that for the slot.
    """
    with target.connect(dbname=dbname, autocommit=True) as superuser:
        found = superuser.execute("select from pg_subscription where subname = %s", (dbname,))
        if found.fetchone() is None:
            return
        name = sql.Identifier(dbname)
        superuser.execute(sql.SQL("alter subscription {} disable").format(name))
        wait_until(lambda: nobody_replicates(cluster, target), "the workers have left")
        run(cluster, "select pg_drop_replication_slot(slot_name) from pg_replication_slots")
        superuser.execute(sql.SQL("alter subscription {} set (slot_name = none)").format(name))
        superuser.execute(sql.SQL("drop subscription {}").format(name))


def nobody_replicates(cluster: Server, target: Server) -> bool:
    """Tell whether there is no worker of a subscription and no walsender."""
    busy = 0
    for server in (cluster, target):
        with server.connect() as superuser:
            row = superuser.execute(
                "select count(*) from pg_stat_activity where backend_type = 'walsender'"
                " or backend_type ~ '^logical replication .*worker$'"
            ).fetchone()
            busy += row[0] if row else 0
    return busy == 0


def states(target: Server, dbname: str) -> set[str]:
    with target.connect(dbname=dbname) as superuser:
        found = superuser.execute("select srsubstate::text from pg_subscription_rel").fetchall()
    return {state for (state,) in found}


def assert_equal(cluster: Server, source: str, target: Server, dbname: str) -> None:
    """Wait for the copy, and for all that was written until now; then compare every row."""
    wait_until(lambda: states(target, dbname) == {"r"}, "every table is copied")
    with cluster.connect(dbname=source, autocommit=True) as superuser:
        row = superuser.execute("select pg_current_wal_lsn()").fetchone()

        def confirmed() -> bool:
            return superuser.execute(
                "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots"
                " where slot_name = %s",
                (row[0] if row else None, dbname),
            ).fetchone() == (True,)

        wait_until(confirmed, "the subscriber has it all")
    ours, theirs = contents(cluster.dsn(dbname=source)), contents(target.dsn(dbname=dbname))
    assert {t for t in ours if ours[t] != theirs[t]} == set()


def owner_runs(server: Server) -> str:
    """From 16 on the worker becomes the table's owner, unless it is told not to."""
    return ", run_as_owner = true" if server.major >= 16 else ""


def write(cluster: Server, source: str) -> None:
    """Do all that fires a trigger: turns, a late judge, a late source, a DOI, a firm that goes."""
    with cluster.connect(dbname=source, autocommit=True) as superuser:
        gone, kept = fill(superuser)
        superuser.execute(
            "update citeledger.message_citations set verified = true, verification_method ="
            " 'exact_match', verification_confidence = 1 where firm_id = %s",
            (kept,),
        )
        world = World(superuser, kept)
        (message,) = superuser.execute(
            "select message_id from citeledger.work_product_fiduciary_gate where firm_id = %s",
            (kept,),
        ).fetchone() or (None,)
        assert message is not None
        world.tool(message, "web_fetch")
        world.document(doi="10.9999/elsewhere")
        superuser.execute("select citeledger.delete_firm(%s)", (gone,))


def subscriber_of(cluster: Server, newest: Server, kind: str) -> Server:
    if kind == "the newest version" and cluster.major == newest.major:
        pytest.skip(f"{cluster.version} is of the newest version itself")
    return cluster if kind == "the same version" else newest


@pytest.mark.parametrize("kind", ["the same version", "the newest version"])
def test_a_copy_that_takes_over(cluster: Server, source: str, newest: Server, kind: str) -> None:
    """The first copy, what follows, and then the failover: the copy is written to."""
    target = subscriber_of(cluster, newest, kind)
    with copied(cluster, source, target, options=owner_runs(target)) as dbname:
        assert_equal(cluster, source, target, dbname)
        write(cluster, source)
        assert_equal(cluster, source, target, dbname)

        unsubscribe(cluster, target, dbname)
        with target.connect(dbname=dbname, autocommit=True) as superuser:
            assert problems(superuser) == []
        # Nothing is to be switched on: the triggers fire for ordinary sessions.
        write(target, dbname)
        with target.connect(dbname=dbname, autocommit=True) as superuser:
            assert problems(superuser) == []
            verdicts = superuser.execute(
                "select count(*), count(distinct g.message_id)"
                " from citeledger.messages as m"
                " left join citeledger.work_product_fiduciary_gate as g"
                " on g.firm_id = m.firm_id and g.message_id = m.id"
                " where m.finalized_at is not null"
            ).fetchone()
        assert verdicts is not None
        assert verdicts[0] == verdicts[1] > 0


def test_the_owner_of_the_tables_cannot_apply(cluster: Server, source: str) -> None:
    """As from 16 on it would by default: row security holds it back, and it says so."""
    if cluster.major < 16:
        pytest.skip("before 16 the worker is the subscription's owner, never the tables' owner")
    with (
        copied(cluster, source, cluster) as dbname,
        cluster.connect(dbname=dbname, autocommit=True) as superuser,
    ):

        def failed() -> bool:
            found = superuser.execute(
                "select sync_error_count + apply_error_count from pg_stat_subscription_stats"
                " where subname = %s",
                (dbname,),
            ).fetchone()
            return found is not None and found[0] > 0

        wait_until(failed, "the worker was refused")
        assert superuser.execute("select count(*) from citeledger.messages").fetchone() == (0,)


def test_a_publishers_role_that_row_security_holds(cluster: Server, source: str) -> None:
    """The first copy would be empty, without an error: the role needs BYPASSRLS."""
    run(cluster, f"grant citeledger_app to {FILTERED}")
    with copied(cluster, source, cluster, options=owner_runs(cluster), role=FILTERED) as dbname:
        wait_until(lambda: states(cluster, dbname) == {"r"}, "every table is copied")
        with cluster.connect(dbname=dbname) as superuser:
            assert superuser.execute("select count(*) from citeledger.messages").fetchone() == (0,)


def test_every_table_can_be_replicated(cluster: Server, source: str) -> None:
    """Each is published and has a key by which its rows are found; no sequence is left behind."""
    with cluster.connect(dbname=source) as superuser:
        missing = superuser.execute(
            """
            select c.relname
            from pg_class as c
            where c.relnamespace in (
                'citeledger'::regnamespace, 'citeledger_private'::regnamespace)
              and (
                c.relkind in ('S', 'v', 'm', 'f')
                or c.relkind in ('r', 'p') and not (
                  c.relreplident = 'd'
                  and exists (select from pg_index as i where i.indrelid = c.oid and i.indisprimary)
                  and exists (
                    select from pg_publication_tables as p
                    where p.schemaname = c.relnamespace::regnamespace::text
                      and p.tablename = c.relname
                  )
                )
              )
            """
        ).fetchall()
        always = superuser.execute(
            "select t.tgname from pg_trigger as t join pg_class as c on c.oid = t.tgrelid"
            " where c.relnamespace = 'citeledger'::regnamespace and t.tgenabled <> 'O'"
        ).fetchall()
    assert (missing, always) == ([], [])
