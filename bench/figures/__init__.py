"""Every figure, in the order of the table, and every plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import backfill, cite, client, finalize, ingest, late, orm, resolve, throughput, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..figure import Figure, Growth
    from ..lab import Lab

FIGURES: Final[tuple[Figure, ...]] = (
    *finalize.FIGURES,
    *throughput.FIGURES,
    *finalize.LEDGER_FIGURES,
    *orm.FIGURES,
    *backfill.FIGURES,
    *cite.FIGURES,
    *orm.TRACE_FIGURES,
    *walk.FIGURES,
    *resolve.FIGURES,
    *ingest.FIGURES,
    *late.FIGURES,
    *client.FIGURES,
)
GROWTH: Final[tuple[tuple[str, Callable[[Lab], Growth]], ...]] = (
    ("finalize_by_sources", finalize.growth_by_sources),
    ("finalize_by_ledger", finalize.growth_by_ledger),
    ("cite_by_page_size", cite.growth_by_page),
    ("cite_by_batch", cite.growth_by_batch),
    ("walk_by_hops", walk.growth),
    ("resolve_by_references", resolve.growth),
)
