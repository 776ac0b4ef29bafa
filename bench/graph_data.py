"""Documents, what they cite, and lists of references to resolve.

A document cites others at random, old and frequently cited ones more than the rest. The edges to
walk are loaded without their lists, which a walk never reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from . import ledger_data
from .ledger_data import FIRM

if TYPE_CHECKING:
    from .server import Connection

REFERENCES_PER_DOCUMENT: Final = 5
# One reference in so many names a document that is not there.
ABSENT_ONE_IN: Final = 5

_DOCUMENTS: Final = """
insert into citeledger.documents (firm_id, id, title, doi)
select %(firm)s, bench.id('paper', n), 'A paper', '10.5555/' || n
from pg_catalog.generate_series(%(first)s::bigint, %(last)s - 1) as n
"""
# A number from 0 to 1 that depends on its arguments alone.
_SHARE: Final = """
create function bench.share(p_number bigint, p_place bigint)
returns double precision language sql immutable parallel safe
return (pg_catalog.hashint8extended(p_number, p_place) & 1048575) / 1048576.0
"""
_EDGES: Final = """
insert into citeledger.document_citations (
  firm_id, citing_document_id, cited_document_id, cited_doi, source
)
select %(firm)s, bench.id('paper', e.citing), bench.id('paper', e.cited), '10.5555/' || e.cited,
  'crossref'
from (
  select distinct n as citing,
    floor(%(documents)s * bench.share(n, j) * sqrt(bench.share(n, j + 1000000)))::bigint as cited
  from pg_catalog.generate_series(0::bigint, %(documents)s - 1) as n,
    pg_catalog.generate_series(1, %(degree)s) as j
) as e
where e.citing <> e.cited
"""
_LISTS: Final = """
insert into citeledger.document_references (firm_id, document_id, position, cited_doi, source)
select %(firm)s, bench.id('paper', n), j,
  case
    when (n + j) %% %(absent)s = 0
      then '10.5555/absent.' || floor(bench.share(n, j) * %(documents)s / %(per)s)::bigint
    else '10.5555/' || floor(bench.share(n, j) * %(documents)s)::bigint
  end,
  'crossref'
from pg_catalog.generate_series(0::bigint, %(documents)s - 1) as n,
  pg_catalog.generate_series(1, %(per)s) as j
on conflict do nothing
"""


def paper(connection: Connection, number: int) -> UUID:
    """Return the id of a document by its number."""
    row = connection.execute("select bench.id('paper', %s)", (number,)).fetchone()
    assert row is not None
    identifier = row[0]
    assert isinstance(identifier, UUID)
    return identifier


def _prepare(connection: Connection, documents: int) -> None:
    ledger_data.prepare(connection)
    connection.execute(_SHARE)
    connection.execute("set session_replication_role = replica")
    connection.execute(_DOCUMENTS, {"firm": FIRM, "first": 0, "last": documents})


def load_edges(connection: Connection, documents: int, edges: int) -> None:
    """Load documents and about so many edges between them."""
    _prepare(connection, documents)
    connection.execute(_EDGES, {"firm": FIRM, "documents": documents, "degree": edges // documents})
    connection.execute("reset session_replication_role")
    connection.execute("vacuum (analyze)")


def load_references(connection: Connection, references: int) -> None:
    """Load the lists of a fifth as many documents; nothing is resolved."""
    documents = references // REFERENCES_PER_DOCUMENT
    _prepare(connection, documents)
    connection.execute(
        _LISTS,
        {
            "firm": FIRM,
            "documents": documents,
            "per": REFERENCES_PER_DOCUMENT,
            "absent": ABSENT_ONE_IN,
        },
    )
    connection.execute("reset session_replication_role")
    connection.execute("vacuum (analyze)")
