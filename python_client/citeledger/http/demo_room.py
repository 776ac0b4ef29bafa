"""The reading room of the demo: its matter on a private database, and people to read it as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from citeledger import demo
from citeledger.client import CiteLedger

from .principal import Principal
from .sign_in import Person, SignIn

if TYPE_CHECKING:
    from citeledger.embedded import Installed

_READ: Final = ("matters:read",)
_HEADING: Final = "Schedule of the deposit"
_ADA: Final = UUID("a0000000-0000-4000-8000-000000000001")
_BEN: Final = UUID("a0000000-0000-4000-8000-000000000002")
_CARLA: Final = UUID("a0000000-0000-4000-8000-000000000003")


@dataclass(frozen=True, slots=True)
class DemoRoom:
    """Who can sign in, and the chat to read."""

    sign_in: SignIn
    chat_id: UUID


def furnish(place: Installed) -> DemoRoom:
    """Play the demo's matter, let its record drift further, and give people to read it as."""
    played = demo.play(place)
    with psycopg.connect(place.admin_dsn, autocommit=True, row_factory=tuple_row) as connection:
        client = CiteLedger(connection)
        (firm_id,) = client.firm_ids()
        other_firm_id = client.create_firm("Brandt & Lowe")
    with (
        psycopg.connect(place.app_dsn, autocommit=True) as connection,
        CiteLedger(connection).context(firm_id=firm_id, permissions=_READ) as bound,
    ):
        _say_thanks(connection, played.trace.chat_id)
        (lease,) = _one(
            connection,
            "select id from citeledger.documents where firm_id = %s and title = %s",
            firm_id,
            demo.LEASE,
        )
        # Scanned once more: a clause on page 7 is misread, and page 9 has found its heading, so
        # that the quote which was block 3 of it is block 4 now.
        pages = demo.PAGES[demo.LEASE]
        pages = pages | {
            7: [*pages[7][:2], f"11.2 {demo.SCANNED_AGAIN}"],
            9: [_HEADING, *pages[9]],
        }
        bound.replace_document_pages(
            lease, [{"page_number": n, "blocks": blocks} for n, blocks in pages.items()]
        )
    people = {
        "ada": Person(
            "Ada Reyes, Harbour Legal",
            "may read the firm's matters",
            Principal(firm_id, _ADA, _READ),
        ),
        "ben": Person(
            "Ben Okafor, Harbour Legal",
            "has no permission to read matters",
            Principal(firm_id, _BEN),
        ),
        "carla": Person(
            "Carla Brandt, Brandt & Lowe",
            "of another firm: for her, nothing of Harbour Legal is there",
            Principal(other_firm_id, _CARLA, _READ),
        ),
    }
    return DemoRoom(SignIn(people), played.trace.chat_id)


def _say_thanks(connection: psycopg.Connection[Any], chat_id: UUID) -> None:
    """Add a turn that cites nothing, and so has a verdict over nothing."""
    for role, content, done in (
        ("user", "Thank you. That is all for now.", False),
        ("assistant", "You are welcome. Nothing was looked up for this answer.", True),
    ):
        connection.execute(
            "insert into citeledger.messages (chat_id, role, content, finalized_at)"
            " values (%s, %s, %s, case when %s then now() end)",
            (chat_id, role, content, done),
        )


def _one(connection: psycopg.Connection[Any], statement: str, *parameters: object) -> Any:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None  # noqa: S101 - the demo has just written it
    return row
