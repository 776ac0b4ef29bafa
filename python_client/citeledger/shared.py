"""What the two clients have in common: everything but the waiting."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from ._version import SUPPORTED_SCHEMA
from .arguments import int_argument
from .errors import CiteLedgerError, InvalidArgument, SchemaVersionError, WrongState

C = TypeVar("C")

_RETRYABLE: Final = frozenset({"40001", "40P01"})
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 1.0


class Block(Generic[C]):
    """A connection, for the length of a block, and who entered the block."""

    __slots__ = ("_connection", "_ended", "_owner")

    def __init__(self, connection: C, owner: object) -> None:
        """Begin; ``owner`` is the thread or the task."""
        self._connection = connection
        self._owner = owner
        self._ended = False

    @property
    def connection(self) -> C:
        """The connection of the block, for SQL of your own in the same transaction."""
        if self._ended:
            raise WrongState(
                "the block that this belongs to has ended",
                hint="Use it only inside its with statement.",
            )
        return self._connection

    def is_open_for(self, owner: object) -> bool:
        """Say whether the block can be nested in: it goes on, and belongs to this thread or task.

        Threads and tasks that were started inside a block may inherit it. To act for another firm
        in it would change the firm of what the block itself is doing.
        """
        return not self._ended and self._owner == owner

    def connection_for(self, owner: object) -> C:
        """Return the connection for a call that names no block: only the block's own find it."""
        connection = self.connection
        if self._owner != owner:
            raise WrongState(
                "the block around this call belongs to another thread or task",
                hint="Call the method on what the with statement gave, and wait for it before the "
                "block ends; or open a context of your own.",
            )
        return connection


_Blocks: TypeAlias = tuple[tuple[object, Block[Any]], ...]
# One variable for all clients: a ContextVar is never collected, so it must not be made per client.
_blocks: ContextVar[_Blocks] = ContextVar("citeledger_blocks", default=())


@contextmanager
def entered(client: object, block: Block[Any]) -> Iterator[None]:
    """Make a block the innermost one of a client; end it at the end."""
    token = _blocks.set((*_blocks.get(), (client, block)))
    try:
        yield
    finally:
        block._ended = True
        # Some frameworks end a block in another context than the one in which they began it.
        with suppress(ValueError):
            _blocks.reset(token)


def innermost(client: object) -> Block[Any] | None:
    """Return the block that a client is in here."""
    return next((block for owner, block in reversed(_blocks.get()) if owner is client), None)


def status_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> int:
    """Return the transaction status."""
    return connection.info.transaction_status


def is_alone(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Say whether the caller leaves it to the client to begin and end transactions."""
    return connection.autocommit and status_of(connection) == TransactionStatus.IDLE


# Refusals


def not_a_handle(value: object, wanted: str) -> InvalidArgument:
    """Refuse what is neither a connection nor a pool."""
    return InvalidArgument(
        "connection_or_pool is not valid",
        detail=f"connection_or_pool: a {type(value).__name__}.",
        hint=f"Pass a {wanted}.",
    )


def threshold_argument(value: int | None) -> int | None:
    """Take None, or a number from 0."""
    if value is not None and int_argument("prepare_threshold", value) < 0:
        raise InvalidArgument(
            "prepare_threshold is not valid",
            detail="prepare_threshold: negative.",
            hint="Pass None to prepare nothing, or a number from 0.",
        )
    return value


def attempts_argument(value: int) -> int:
    """Take a number from 1."""
    if int_argument("attempts", value) < 1:
        raise InvalidArgument(
            "attempts is not valid", detail="attempts: less than 1.", hint="Pass 1 or more."
        )
    return value


def not_installed() -> SchemaVersionError:
    """Refuse a database that has no citeledger."""
    return SchemaVersionError(
        "citeledger is not installed in this database",
        detail="There is no function citeledger.version().",
        hint="Deploy it with Sqitch, with `citeledger deploy`, or by running sql/citeledger.sql, "
        "in the database that the connection is for.",
    )


def known(version: str) -> bool:
    """Accept a schema that the client knows, and refuse any other."""
    if version not in SUPPORTED_SCHEMA:
        raise SchemaVersionError(
            "this client does not know the version of the schema",
            detail=f"The database has {version}; the client knows "
            f"{', '.join(sorted(SUPPORTED_SCHEMA))}.",
            hint="Install the release of the client that belongs to the schema, or deploy the "
            "schema that belongs to the client.",
        )
    return True


def inside_a_transaction() -> WrongState:
    """Refuse to run again what is only a part of a transaction."""
    return WrongState(
        "retry cannot run inside a transaction",
        detail="Only the one who began the transaction can run it again.",
        hint="Call retry first, and open context blocks inside the function that it runs.",
    )


# Running again


def runs_again(error: psycopg.Error | CiteLedgerError, attempt: int, attempts: int) -> bool:
    """Say whether the database asks to have the whole transaction run again."""
    return error.sqlstate in _RETRYABLE and attempt < attempts


def pause_after(attempt: int) -> float:
    """Return for how many seconds to wait; it grows and varies."""
    pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))
    return random.uniform(pause / 2, pause)  # noqa: S311 - spreading, not secrecy
