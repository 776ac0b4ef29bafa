"""Crossref's works out of files of every form, in memory that does not grow with the file."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from citeledger.ingest.crossref import Works

WORK_A, WORK_B = {"DOI": "10.1000/a"}, {"DOI": "10.1000/b", "reference": [{"items": [1]}]}


def records(data: bytes | str) -> list[tuple[int, Any, str | None]]:
    whole = data.encode() if isinstance(data, str) else data
    return [(r.position, r.work, r.reason) for r in Works(io.BytesIO(whole))]


BOTH = [(1, WORK_A, None), (2, WORK_B, None)]
LISTS = {
    "a list": [WORK_A, WORK_B],
    "a list of answers": [{"message": WORK_A}, {"status": "ok", "message": WORK_B}],
    "an answer with items": {"status": "ok", "message": {"total": 2, "items": [WORK_A, WORK_B]}},
    "an answer that goes on": {"message": {"items": [WORK_A, WORK_B], "more": {"a": [[]]}}, "z": 1},
    "items": {"items": [WORK_A, WORK_B]},
}
INDENTS = [None, 1]


@pytest.mark.parametrize("form", LISTS)
@pytest.mark.parametrize("indent", INDENTS)
@pytest.mark.parametrize("packed", [False, True])
def test_lists(form: str, indent: int | None, packed: bool) -> None:
    data = json.dumps(LISTS[form], indent=indent).encode()
    assert records(gzip.compress(data) if packed else data) == BOTH


@pytest.mark.parametrize("wrap", [lambda work: work, lambda work: {"message": work}])
@pytest.mark.parametrize("indent", INDENTS)
@pytest.mark.parametrize("before", ["", "\ufeff", "\n \n"])
def test_one_work(wrap: Any, indent: int | None, before: str) -> None:
    assert records(before + json.dumps(wrap(WORK_B), indent=indent)) == [(1, WORK_B, None)]


def test_one_work_a_line() -> None:
    lines = [json.dumps(WORK_A), "", json.dumps({"message": WORK_B}), "{broken}", "7", "null", "{}"]
    assert records("\n".join(lines)) == [
        *BOTH,
        (3, None, "the line is no JSON"),
        (4, None, "it is not an object"),
        (5, None, "it is not an object"),
        (6, {}, None),
    ]


def test_what_is_no_work_is_skipped_in_its_place() -> None:
    assert records(json.dumps([WORK_A, 7, None, "x", [WORK_A], WORK_B])) == [
        (1, WORK_A, None),
        *((n, None, "it is not an object") for n in (2, 3, 4, 5)),
        (6, WORK_B, None),
    ]


@pytest.mark.parametrize(
    "data",
    ["", " \n", "nonsense", '[{"DOI": "10.1000/a"}, {"DOI":', "[1,,2]", b"[\xff]", b"\x1f\x8b",
     b"\x1f\x8bnonsense", gzip.compress(b"[1, 2]" * 9)[:-9], "[" * 100_000, '{"a":\n' * 100_000,
     '{"a":' * 100_000 + "}" * 100_000],
)  # fmt: skip
def test_what_breaks_off_ends_with_a_reason(data: bytes | str) -> None:
    *before, (_, work, reason) = records(data)
    assert work is None
    assert reason
    assert "\n" not in reason
    assert all(work == WORK_A or reason == "it is not an object" for _, work, reason in before)


CUT = "the file is not whole: its gzip data break off"


def broken_off(text: str) -> bytes:
    """Pack a text so that all of it is there, and what a whole file ends with is not."""
    packing = zlib.compressobj(wbits=31)
    return packing.compress(text.encode()) + packing.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize("end", ["", ",", ', {"DOI": "10.10', ', {"DOI": "10.1000/c"'])
@pytest.mark.parametrize("start", ["[", '{"items": [', '{"message":\n{"items":\n['])
@pytest.mark.parametrize("indent", INDENTS)
def test_a_list_that_breaks_off_gives_the_works_before(
    start: str, end: str, indent: int | None
) -> None:
    both = ", ".join(json.dumps(work, indent=indent) for work in (WORK_A, WORK_B))
    assert records(broken_off(start + both + end)) == [*BOTH, (3, None, CUT)]


@pytest.mark.parametrize("end", ["", "\n", "\n{", '\n{"DOI": "10.1000/c"', '\n{"a": {}'])
@pytest.mark.parametrize("wrapped", [False, True])
def test_lines_that_break_off_give_the_works_before(end: str, wrapped: bool) -> None:
    both = [{"message": work} if wrapped else work for work in (WORK_A, WORK_B)]
    text = "\n".join(map(json.dumps, both))
    assert records(broken_off(text + end)) == [*BOTH, (3, None, CUT)]


def test_a_break_in_the_check_sum_loses_no_work() -> None:
    whole = gzip.compress(json.dumps([WORK_A, WORK_B]).encode())
    for packed in (whole[:-8], whole[:-1], whole[:-8] + b"\0" * 8):
        assert records(packed) == [*BOTH, (3, None, CUT)]


def test_much_that_breaks_off_anywhere_gives_one_reason_at_its_end() -> None:
    works = [{"DOI": f"10.1000/{n}", "title": str(hash((n, n)))} for n in range(3000)]
    whole = gzip.compress(json.dumps(works).encode())
    for size in range(20, len(whole), len(whole) // 7):
        *before, last = records(whole[:size])
        assert [work for _, work, _ in before] == works[: len(before)]
        assert last == (len(before) + 1, None, CUT)
    assert len(before) > 2000


@pytest.mark.parametrize(
    ("data", "empty"), [(b"", True), (gzip.compress(b""), True), (b"\n", False)]
)
def test_a_file_knows_that_it_is_empty(data: bytes, empty: bool) -> None:
    assert Works(io.BytesIO(data)).empty is empty


@pytest.mark.parametrize("data", ["[" * 1000 + "]" * 1000, '[{"a":\n' * 1000, '{"a":' * 9999])
def test_a_nesting_that_no_work_has(data: str) -> None:
    ((_, _, reason),) = records(data)
    assert reason is not None
    assert "nested too deeply" in reason


def test_numbers_that_no_float_holds_are_no_hindrance() -> None:
    assert [p for p, work, _ in records('[{"a": 1e999, "b": 12345678901234567890123}]') if work]


class _Endless(io.RawIOBase):
    """A file that is made while it is read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = next(self._parts, b"")
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


@pytest.mark.parametrize("form", ["list", "answer", "lines"])
def test_memory_does_not_grow_with_the_file(form: str) -> None:
    works = 4000
    work = json.dumps({"DOI": "10.1000/a", "abstract": "x" * 4000})

    def parts() -> Iterator[bytes]:
        yield {"list": b"[\n", "answer": b'{"message":\n{"items":\n[', "lines": b""}[form]
        separator = b"\n" if form == "lines" else b",\n"
        for n in range(works):
            yield (separator if n else b"") + work.encode()
        yield {"list": b"]", "answer": b"]}}", "lines": b""}[form]

    tracemalloc.start()
    try:
        read = sum(r.work is not None for r in Works(_Endless(parts())))  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == works
    assert peak < 2**20  # of 16 megabytes


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (b"1" * 1_001, "a number in it is too long; nothing behind it was read"),
        (b"1" * 200_000, "a number in it is too long; nothing behind it was read"),
        (
            b"1e999999999999999999999",
            "the file is no JSON from here on; nothing behind it was read",
        ),
        (b'"' + b"x" * (9 * 2**20) + b'"', "a text in it is too long; nothing behind it was read"),
        (
            b'"' + rb"\"" * (5 * 2**20) + b'"',
            "a text in it is too long; nothing behind it was read",
        ),
    ],
    ids=["number", "very long number", "exponent", "text", "text of quotes"],
)
def test_what_would_break_the_parser_is_refused(more: bytes, reason: str) -> None:
    """A number of so many digits ends the interpreter; a long text takes time by the square."""
    data = b"[" + json.dumps(WORK_A).encode() + b',{"n":' + more + b"}," + b"{}]"
    assert records(data) == [(1, WORK_A, None), (2, None, reason)]


def test_a_long_number_over_the_end_of_a_chunk() -> None:
    data = b'[{"a":"' + b"x" * (2**16 - 300) + b'","n":' + b"7" * 1_500 + b"}]"
    assert records(data)[-1][2] == "a number in it is too long; nothing behind it was read"


def test_a_line_that_is_cut_where_an_object_ends_is_no_json_line() -> None:
    """The longest line that is looked at may end with a brace by chance."""
    item = b'{"DOI":"10.1000/a"},'
    head = b'{"message":{"items":['
    body = item * ((8 * 2**20) // len(item) + 2)
    for pad in range(len(item)):
        data = head + b" " * pad + body[:-1] + b"]}}"
        if data[: 8 * 2**20].endswith(b"}"):
            break
    found = list(Works(io.BytesIO(data)))
    assert len(found) == len(body) // len(item)
    assert {r.reason for r in found} == {None}


def test_a_first_line_that_is_part_of_an_answer() -> None:
    data = '{"message":{"items":[{"DOI":"10.1000/a"}\n,\n{"DOI":"10.1000/b"}\n]}}'
    assert [r[1] for r in records(data)] == [{"DOI": "10.1000/a"}, {"DOI": "10.1000/b"}]
