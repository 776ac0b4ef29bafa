"""The order of the checks: each fault hides those behind it, and no other."""

from __future__ import annotations

import itertools

import pytest

from support.door import Door
from support.records import Records

# From the first check to the last: what makes it fail, and the status.
FAULTS = {
    "no principal": 401,
    "too large": 413,
    "no path": 404,
    "no permission": 403,
    "no JSON": 415,
    "malformed": 422,
    "not there": 404,
}
ORDER = list(FAULTS)


def ask(door: Door, records: Records, faults: set[str]) -> int:
    span = records.span()
    if "not there" in faults:
        span = records.span(records.not_there["privileged"][1])
    if "malformed" in faults:
        span["page_number"] = 0
    if "too large" in faults:
        span["quote"] = "x" * 70_000
    return door.cite(
        span,
        matter="nowhere" if "no path" in faults else None,
        bearer="nobody" if "no principal" in faults else None,
        headers={"Content-Type": "text/plain"} if "no JSON" in faults else None,
        permissions=[] if "no permission" in faults else ["matters:read"],
    ).status


def test_nothing_is_wrong(door: Door, records: Records) -> None:
    assert ask(door, records, set()) == 200


@pytest.mark.parametrize(
    "faults",
    [set(c) for n in (1, 2, 3, len(ORDER)) for c in itertools.combinations(ORDER, n)],
    ids=lambda f: ", ".join(sorted(f, key=ORDER.index)),
)
def test_the_first_fault_decides(door: Door, records: Records, faults: set[str]) -> None:
    assert ask(door, records, faults) == FAULTS[min(faults, key=ORDER.index)]


def test_who_may_not_read_is_told_nothing_about_the_body(door: Door) -> None:
    answers = {repr(door.cite(raw=raw, permissions=[])) for raw in (b"", b"{", b"\xff", b"{}")}
    assert len(answers) == 1
    assert door.cite(raw=b"", permissions=["matters:rea"]).status == 403
    assert door.cite(raw=b"", permissions=...).status == 403


def test_no_principal_is_asked_for_before_the_body_is_read(door: Door) -> None:
    answer = door.cite(raw=[b"x" * 60_000] * 20, headers={"Authorization": ""})
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
