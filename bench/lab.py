"""What the figures work with: databases, each loaded when the first figure asks for it."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from . import graph_data, ledger_data, page_data
from .ledger_data import FIRM, OPEN, SOURCES_PER_TURN, NotEqualError
from .server import ADMIN, APP, FLOOR, Bench, Connection, set_context
from .wire import Wire, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from uuid import UUID

    from .figure import Measured
    from .scale import Scale

CONTEXT = "select citeledger.set_context($1, null, '{matters:read}')"


@dataclass(slots=True)
class Database:
    """One database of the run, and a superuser's hand in it."""

    bench: Bench
    name: str
    superuser: Connection
    next_turn: int = OPEN

    def app(self) -> Wire:
        """Open a connection of the application, with the context prepared as ``context``."""
        return self._in_context(APP)

    def admin(self) -> Wire:
        """Open a connection of the admin, with the context prepared as ``context``."""
        return self._in_context(ADMIN)

    def floor(self) -> Wire:
        """Open a connection of whoever writes by hand and passes row security."""
        return Wire(self.bench.dsn(FLOOR, self.name))

    def _in_context(self, user: str) -> Wire:
        wire = Wire(self.bench.dsn(user, self.name))
        wire.prepare("context", CONTEXT)
        return wire

    def open_turns(self, count: int, sources: int = SOURCES_PER_TURN) -> list[UUID]:
        """Add open turns; of each two in a row the sources are alike."""
        first = self.next_turn
        # A pair begins with an even number, and no two calls share a chat.
        self.next_turn += -(-count // 100) * 100
        return ledger_data.open_turns(self.superuser, first, count, sources)

    def settle_down(self) -> None:
        """Leave nothing behind that the server would do during the measurement."""
        self.superuser.execute("checkpoint")

    def check_integrity(self) -> None:
        """Raise if anything in the firm is not what it should be."""
        with self.superuser.transaction():
            set_context(self.superuser, FIRM)
            row = self.superuser.execute(
                "select * from citeledger.check_integrity() limit 1"
            ).fetchone()
        if row is not None:
            raise NotEqualError(f"{self.name}: {row}")


def begin(wire: Wire) -> None:
    """Begin a transaction in the firm's context, as an application does before anything else."""
    wire.execute("begin")
    wire.execute("context", [text(FIRM)])


@dataclass(slots=True)
class Lab(AbstractContextManager["Lab"]):
    """A server, the sizes of the run, and the databases that were asked for so far."""

    bench: Bench
    scale: Scale
    say: Callable[[str], None] = print
    _open: ExitStack = field(default_factory=ExitStack)
    _databases: dict[str, Database] = field(default_factory=dict)
    _measured: dict[tuple[object, ...], Measured] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Give the lab itself."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self._open.close()

    def ledger(self, entries: int | None = None) -> Database:
        """Give a database with so many entries in its ledger, by default the run's largest."""
        entries = entries or self.scale.ledger
        name = f"ledger_{entries}"
        if name in self._databases:
            return self._databases[name]
        smaller = max((size for size in self.scale.ledgers if size < entries), default=0)
        start = time.monotonic()
        if smaller:
            grown = self.ledger(smaller)
            self._let_go(grown)
            made = self._create(name, grown.name)
            made.next_turn = grown.next_turn
            self._take_up(grown)
        else:
            made = self._create(name)
            ledger_data.prepare(made.superuser)
        ledger_data.grow(made.superuser, smaller // SOURCES_PER_TURN, entries // SOURCES_PER_TURN)
        if not smaller:
            # The others are loaded by the same statements.
            made.check_integrity()
        self._loaded(made, start)
        return made

    def pages(self) -> Database:
        """Give a database with pages of every size."""
        return self._loaded_once(
            "pages", lambda connection: page_data.load(connection, self.scale.page_sizes)
        )

    def citations(self) -> Database:
        """Give a database with the documents and edges that are walked."""
        return self.edges(self.scale.documents, self.scale.edges)

    def edges(self, documents: int, edges: int) -> Database:
        """Give a database with so many documents and about so many edges between them."""
        return self._loaded_once(
            f"edges_{documents}_{edges}",
            lambda connection: graph_data.load_edges(connection, documents, edges),
        )

    def references(self, count: int | None = None) -> Database:
        """Give a database with so many references and a fifth as many documents, no edge."""
        count = count or self.scale.references[-1]
        return self._loaded_once(
            f"references_{count}",
            lambda connection: graph_data.load_references(connection, count),
        )

    def copied(self, name: str, database: Database, statements: Sequence[str]) -> Database:
        """Give a copy of a database in which some statements were run."""
        if name not in self._databases:
            self._let_go(database)
            made = self._create(name, database.name)
            made.next_turn = database.next_turn
            self._take_up(database)
            for statement in statements:
                made.superuser.execute(statement)
        return self._databases[name]

    def empty(self, name: str) -> Database:
        """Give a database with nothing but the firm."""

        def load(connection: Connection) -> None:
            ledger_data.prepare(connection)

        return self._loaded_once(name, load)

    def once(self, what: tuple[object, ...], measure: Callable[[], Measured]) -> Measured:
        """Measure what a figure and a plot both show only once in a run."""
        if what not in self._measured:
            self._measured[what] = measure()
        return self._measured[what]

    def drop(self, database: Database) -> None:
        """Drop a database that nobody will ask for again."""
        self._let_go(database)
        self.bench.drop(database.name)
        del self._databases[database.name]

    def _loaded_once(self, name: str, load: Callable[[Connection], None]) -> Database:
        if name not in self._databases:
            start = time.monotonic()
            made = self._create(name)
            load(made.superuser)
            self._loaded(made, start)
        return self._databases[name]

    def _create(self, name: str, template: str | None = None) -> Database:
        if template is None:
            self.bench.create(name)
        else:
            self.bench.create(name, template)
        made = Database(self.bench, name, self._open.enter_context(self.bench.superuser(name)))
        self._databases[name] = made
        return made

    def _loaded(self, database: Database, start: float) -> None:
        database.settle_down()
        self.say(f"loaded {database.name} in {time.monotonic() - start:.0f} s")

    def _let_go(self, database: Database) -> None:
        """Close the connection: a database with one cannot be copied or dropped."""
        database.superuser.close()

    def _take_up(self, database: Database) -> None:
        database.superuser = self._open.enter_context(self.bench.superuser(database.name))
