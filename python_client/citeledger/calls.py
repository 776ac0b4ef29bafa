"""The one table of what the client can ask the database: SQL, arguments, row type.

A call is data and pure functions, no input or output, so that a client over another kind of
connection runs the same table. JSON is asked for as text and read here: a caller's connection may
have its own idea of how jsonb, uuid or timestamps are to be loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar
from uuid import UUID

from . import arguments as check
from . import rows

P = ParamSpec("P")
R = TypeVar("R")
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Call(Generic[P, R]):
    """One statement: how it is asked, how its arguments are checked, what its rows become."""

    name: str
    sql: str
    arguments: Callable[P, tuple[object, ...]]
    result: Callable[[Sequence[Row]], R]


def _value(result: Sequence[Row]) -> Any:
    return result[0][0]


def _json(result: Sequence[Row]) -> Any:
    value = _value(result)
    return None if value is None else json.loads(value)


def _none(_: Sequence[Row]) -> None:
    return None


def _no_arguments() -> tuple[object, ...]:
    return ()


def _message(message_id: UUID | str) -> tuple[object, ...]:
    return (check.uuid_argument("message_id", message_id),)


def _messages(message_ids: Iterable[UUID | str]) -> tuple[object, ...]:
    return (check.uuids_argument("message_ids", message_ids),)


def _limit(limit: int) -> tuple[object, ...]:
    return (check.int_argument("limit", limit),)


def _trace(chat_id: UUID | str, message_id: UUID | str | None) -> tuple[object, ...]:
    return (
        check.uuid_argument("chat_id", chat_id),
        check.optional_uuid_argument("message_id", message_id),
    )


def _context(
    firm_id: UUID | str,
    user_id: UUID | str | None,
    permissions: Collection[str],
) -> tuple[object, ...]:
    return (
        check.uuid_argument("firm_id", firm_id),
        check.optional_uuid_argument("user_id", user_id),
        check.texts_argument("permissions", permissions),
    )


FINALIZE_TURN: Final = Call(
    "finalize_turn",
    "select citeledger.finalize_turn(%s::uuid)::text",
    _message,
    lambda r: rows.finalize_report(_json(r)),
)
FINALIZE_TURNS: Final[Call[[Iterable[UUID | str]], int]] = Call(
    "finalize_turns",
    "select citeledger.finalize_turns(%s::uuid[])",
    _messages,
    _value,
)
FINALIZE_PENDING: Final[Call[[int], int]] = Call(
    "finalize_pending",
    "select citeledger.finalize_pending(%s::integer)",
    _limit,
    _value,
)
ASSEMBLE_LEDGER_ENTRIES: Final[Call[[UUID | str], int]] = Call(
    "assemble_ledger_entries",
    "select citeledger.assemble_ledger_entries(%s::uuid)",
    _message,
    _value,
)
COMPUTE_AND_RECORD_GATE: Final = Call(
    "compute_and_record_gate",
    "select (pg_catalog.to_jsonb(citeledger.compute_and_record_gate(%s::uuid)) - 'firm_id')::text",
    _message,
    lambda r: rows.optional_gate(_json(r)),
)
LEDGER_TRACE: Final = Call(
    "ledger_trace",
    "select citeledger.ledger_trace(%s::uuid, %s::uuid)::text",
    _trace,
    lambda r: rows.ledger_trace(_json(r)),
)
CHECK_INTEGRITY: Final = Call(
    "check_integrity",
    "select c.problem, c.table_name, c.row_key from citeledger.check_integrity() as c",
    _no_arguments,
    lambda r: [rows.IntegrityProblem(*row) for row in r],
)
VERSION: Final[Call[[], str]] = Call(
    "version",
    "select citeledger.version()",
    _no_arguments,
    _value,
)

CALLS: Final[tuple[Call[..., Any], ...]] = (
    FINALIZE_TURN,
    FINALIZE_TURNS,
    FINALIZE_PENDING,
    ASSEMBLE_LEDGER_ENTRIES,
    COMPUTE_AND_RECORD_GATE,
    LEDGER_TRACE,
    CHECK_INTEGRITY,
    VERSION,
)
"""Everything that a caller can ask for, by the name of the SQL function."""

SET_CONTEXT: Final = Call(
    "set_context",
    "select citeledger.set_context(%s::uuid, %s::uuid, %s::text[])",
    _context,
    _none,
)

# What follows is the client's own housekeeping, not part of the table.

HAS_VERSION: Final[Call[[], bool]] = Call(
    "has_version",
    # Asking the catalogue does not abort the caller's transaction when the schema is missing.
    "select pg_catalog.to_regprocedure('citeledger.version()') is not null",
    _no_arguments,
    _value,
)


@dataclass(frozen=True, slots=True)
class ContextBefore:
    """The context that a block found, and the transaction in which it found it."""

    firm_id: str | None
    user_id: str | None
    permissions: str | None
    transaction: str


READ_CONTEXT: Final = Call(
    "read_context",
    "select pg_catalog.current_setting('citeledger.firm_id', true),"
    " pg_catalog.current_setting('citeledger.user_id', true),"
    " pg_catalog.current_setting('citeledger.permissions', true),"
    # now() is when the transaction began, which tells this one from any later one.
    " extract(epoch from pg_catalog.now())::text",
    _no_arguments,
    lambda r: ContextBefore(*r[0]),
)


def _restore(before: ContextBefore) -> tuple[object, ...]:
    return (
        before.firm_id or "",
        before.user_id or "",
        before.permissions or "",
        before.transaction,
    )


RESTORE_CONTEXT: Final = Call(
    "restore_context",
    "select pg_catalog.set_config('citeledger.firm_id', %s, true),"
    " pg_catalog.set_config('citeledger.user_id', %s, true),"
    " pg_catalog.set_config('citeledger.permissions', %s, true)"
    # In a later transaction the block's context is already gone, and so is the one before it.
    " where extract(epoch from pg_catalog.now())::text = %s",
    _restore,
    _none,
)
