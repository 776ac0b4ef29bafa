"""One soak from beginning to end."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from citeledger import CiteLedger
from soak.clients import Client, Firm, ended, make_firm, started
from soak.faults import Faults
from soak.journal import EXPECTED, Journal
from soak.oracle import examined
from soak.server import connected, soaked_server

PATIENCE = 90.0


@dataclass(frozen=True, slots=True)
class Options:
    """How long, how many, and on which server."""

    seconds: float = 300.0
    clients: int = 32
    firms: int = 8
    seed: str = "0"
    server: str = "embedded"
    faults: float = 1.0
    """How many times as many faults as usual."""
    directory: Path | None = None
    """Where the server's data stays; by default it is removed."""


def _place(number: int, firms: list[Firm], clients: int) -> tuple[Firm, list[tuple[UUID, str]]]:
    """Return the firm of a client, and the papers that are its own among the firm's clients."""
    rank, place = divmod(number, len(firms))
    colleagues = -(-(clients - place) // len(firms))
    return firms[place], firms[place].papers[rank::colleagues]


def soak(options: Options) -> dict[str, Any]:
    """Let the clients work while things go wrong; return what was done and what was lost."""
    journal = Journal()
    with soaked_server(options.server, options.directory) as server:
        with connected(server, "soak_admin") as admin:
            version = admin.info.parameter_status("server_version")
            schema = CiteLedger(admin).version()
            chance = random.Random(f"{options.seed}/firms")
            firms: list[Firm] = [
                make_firm(admin, f"Firm {number}", chance) for number in range(options.firms)
            ]
        clients = [
            Client(number, options.seed, server, *_place(number, firms, options.clients), journal)
            for number in range(options.clients)
        ]
        faults = Faults(options.seed, server, journal, options.faults)
        begun = time.monotonic()
        started(clients)
        faults.start()
        time.sleep(options.seconds)
        faults.end()
        stuck = ended(clients, PATIENCE)
        worked = time.monotonic() - begun
        # Once more without a checkpoint, so that all that is examined was recovered.
        server.crash()
        server.start()
        report = examined(server, journal, firms)
    problems = [*report.problems, *journal.unexpected[:20], *(f"stuck: {name}" for name in stuck)]
    return {
        "seed": options.seed,
        "server": f"{options.server} {version}",
        "citeledger": schema,
        "seconds": round(worked, 1),
        "clients": options.clients,
        "firms": options.firms,
        **report.figures,
        "faults": dict(sorted(journal.faults.items())),
        "errors": {
            code: {"seen": count, "meaning": EXPECTED.get(code, "unexpected")}
            for code, count in sorted(journal.errors.items())
        },
        "losses": dict(report.losses),
        "unexpected": len(journal.unexpected) + len(stuck),
        "problems": problems,
    }
