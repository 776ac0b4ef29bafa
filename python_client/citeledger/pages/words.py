"""The words for what the database says. Here is only how it is called, never what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from citeledger.rows import Gate

    from .views import LiveCounts


@dataclass(frozen=True, slots=True)
class Badge:
    """A word, the shape beside it, and what it means."""

    shape: str
    word: str
    meaning: str


_TIERS: Final = {
    "pass": Badge("check", "Verbatim", "The quoted words were found in the source."),
    "supported": Badge("half", "Supported", "A judge found the source to say this."),
    "fail": Badge("cross", "Failed", "Nothing confirms it."),
    "provenance": Badge("diamond", "Provenance", "Where it came from; nothing is asserted."),
}
_UNRECOGNIZED: Final = Badge("question", "Unrecognised", "A status that the gate does not know.")
# In court a near match is not to be read as the very words.
_NEAR: Final = Badge("check", "Near-verbatim", "Found in the source with small differences.")

_STATUSES: Final = {
    "exact_match": "exact match",
    "tolerant_match": "tolerant match",
    "paraphrase_judge": "judged a fair paraphrase",
    "ensemble_strict": "judged by an ensemble, strict",
    "ensemble_majority": "judged by an ensemble, by majority",
    "unverified": "not verified",
    "failed": "checked, and not found",
    "provenance": "a source that was consulted",
}

_VERDICTS: Final = {
    "fiduciary_grade": Badge("check", "Fiduciary grade", "Every cited assertion was verified."),
    "supported_only": Badge(
        "half", "Supported only", "Nothing failed, but some citations rest on a judgement."
    ),
    "flagged": Badge("cross", "Flagged", "At least one citation does not hold."),
}
_NOTHING_CITED: Final = Badge(
    "ring", "No cited assertions", "Nothing was cited, so nothing was verified."
)
_NO_VERDICT: Final = Badge("question", "No verdict", "The database has recorded none.")

VERIFIED: Final = Badge("check", "Verified now", "The quoted words stand on the live page.")
DRIFTED: Final = Badge("cross", "Needs re-verification", "The quote no longer holds as recorded.")
NEVER_HELD: Final = Badge(
    "cross",
    "Still not found",
    "The quoted words do not stand on this page; they were not verified when the turn was recorded "
    "either.",
)
UNCHECKABLE: Final = Badge(
    "question",
    "Cannot be checked",
    "There is no record to check it against: withdrawn, privileged, or none of this matter.",
)

_REASONS: Final = {
    "no_pages": "The document has no pages now.",
    "page_missing": "The page is no longer in the document.",
    "block_out_of_range": "The page no longer has this block.",
    "offsets_out_of_range": "The text is shorter now than the place that was cited.",
    "text_mismatch": "Other words stand in this place now.",
    "quote_absent": "The quoted words do not stand here now.",
    "not_anchored": "The citation names no page.",
}


def tier_badge(tier: str | None, status: str) -> Badge:
    """Return the badge of an entry."""
    if status == "tolerant_match":
        return _NEAR
    return _TIERS.get(tier or "", _UNRECOGNIZED)


def tier_class(tier: str | None) -> str:
    """Return the name by which the style sheet knows a tier."""
    return tier if tier in _TIERS else "unrecognized"


def status_words(status: str) -> str:
    """Return what a status of verification says."""
    return _STATUSES.get(status, status)


def verdict_badge(gate: Gate | None) -> Badge:
    """Return the badge of a turn: a verdict over nothing is not shown as one over something."""
    if gate is None:
        return _NO_VERDICT
    if gate.gate_status == "fiduciary_grade" and gate.total_assertions == 0:
        return _NOTHING_CITED
    return _VERDICTS[gate.gate_status]


def verdict_class(gate: Gate | None) -> str:
    """Return the name by which the style sheet knows a verdict."""
    if gate is None:
        return "none"
    if gate.gate_status == "fiduciary_grade" and gate.total_assertions == 0:
        return "empty"
    return gate.gate_status


def not_holding_badge(tier: str | None) -> Badge:
    """Return the badge of a live check that failed: of what was verified once, or of what never."""
    return NEVER_HELD if tier == "fail" else DRIFTED


def plural(number: int, word: str) -> str:
    """Write how many of something there are."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def not_holding_words(counts: LiveCounts) -> list[str]:
    """Write how many live checks did not hold, each kind by itself, and only those there are."""
    several = [
        (counts.drifted, "needs re-verification", "need re-verification"),
        (
            counts.never_held,
            "was not verified before and is not found now",
            "were not verified before and are not found now",
        ),
        (counts.uncheckable, "cannot be checked", "cannot be checked"),
    ]
    return [f"{n} {one if n == 1 else many}" for n, one, many in several if n]


def reason_words(reason: str | None) -> str:
    """Return what a reason of the live check says."""
    return _REASONS.get(reason or "", "It no longer holds.")
