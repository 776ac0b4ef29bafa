"""Pages and blocks out of files, with every character where it was."""

from __future__ import annotations

import logging
import os
import tracemalloc
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from citeledger.ingest import UnreadableFileError, blocks_of, pdf, read_file
from citeledger.ingest.characters import storable
from citeledger.ingest.text import pages_of

ODD = "pro\ufb01t\u00ad\n\u00a7\u00a02\u2028x\x0by\x85z"


def write_pdf(path: Path, pages: list[str], password: str | None = None) -> Path:
    """Write a PDF, a line of Helvetica for each line of the text."""
    writer = PdfWriter()
    font = writer._add_object(
        DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
    )
    for text in pages:
        page = writer.add_blank_page(612, 792)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        stream = DecodedStreamObject()
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n") if text)
        stream.set_data(f"BT /F1 12 Tf 72 720 Td {lines}ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    with path.open("wb") as file:
        writer.write(file)
    return path


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("", ()),
        (" \n\t\n\u00a0\n", ()),
        ("one", ("one",)),
        ("one\ntwo", ("one\ntwo",)),
        ("one\n\ntwo", ("one", "two")),
        ("\n\none\n \t\n\n  two \n  three\n\n", ("one", "  two \n  three")),
        ("one\r\ntwo\r\n\r\nthree\r\n", ("one\r\ntwo", "three")),
        ("one\rtwo\r\rthree", ("one\rtwo", "three")),
        ("\ufeffArticle 1\n", ("\ufeffArticle 1",)),
        (ODD, (ODD,)),
    ],
)  # fmt: skip
def test_blocks(text: str, blocks: tuple[str, ...]) -> None:
    assert blocks_of(text) == blocks


@given(st.text(alphabet="ab \n\r\t\u00a0\u2028"))
def test_blocks_are_slices_of_the_text_in_its_order(text: str) -> None:
    at = 0
    left = []
    for block in blocks_of(text):
        found = text.index(block, at)
        left.append(text[at:found])
        at = found + len(block)
        assert block.strip()
        assert block == block.strip("\r\n")
    # What is in no block is white space, and nothing but it.
    assert "".join([*left, text[at:]]).strip() == ""


def test_form_feeds_begin_pages() -> None:
    def shape(text: str) -> list[tuple[int, tuple[str, ...]]]:
        return [(page.number, page.blocks) for page in pages_of(text)]

    assert shape("a\fb") == [(1, ("a",)), (2, ("b",))]
    assert shape("a\fb\f") == shape("a\fb\f\n") == [(1, ("a",)), (2, ("b",))]
    assert shape("a\f\fc") == [(1, ("a",)), (2, ()), (3, ("c",))]
    assert shape("\fb") == [(1, ()), (2, ("b",))]
    assert shape("a") == [(1, ("a",))]


def test_what_cannot_be_stored_is_replaced_one_by_one() -> None:
    assert storable("fine \U0001f4c4") == ("fine \U0001f4c4", 0)
    assert storable("a\0b\ud800c\udc00\udc00") == ("a\ufffdb\ufffdc\ufffd\ufffd", 4)
    # Two halves that belong together are the character that they mean.
    assert storable("\ud83d\udcc4!") == ("\U0001f4c4!", 0)


def refusal(path: Path) -> str:
    with pytest.raises(UnreadableFileError) as caught:
        read_file(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.txt", b"", "is empty"),
        ("a.pdf", b"", "is empty"),
        ("a.txt", b" \n\f\n", "has no text"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "NUL byte at position 8"),
        ("a.txt", b"caf\xe9", "byte 0xe9 at position 3"),
        ("a.txt", "caf\u00e9".encode("utf-16"), "neither a PDF nor"),
        ("a.txt", b"nul\0inside", "NUL byte at position 3"),
        ("a.txt", b"\xed\xa0\x80", "UTF-8"),
        ("a.pdf", b"Dear Sir", "not a PDF"),
        ("a.pdf", b"%PDF-1.7\nnothing more", "is damaged or cut off and cannot be read as a PDF"),
        ("a.txt", b"%PDF-1.7\n" + b"\0" * 5000, "cannot be read as a PDF"),
    ],
)
def test_what_cannot_go_in(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert why in refusal(path)


def test_only_a_pdf_is_advised_to_go_through_ocr(tmp_path: Path) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n")
    assert refusal(blank) == "has no text on its page"


def test_what_is_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "is a directory"
    assert refusal(tmp_path / "none") == "does not exist"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "is not a regular file"
    (tmp_path / "loop").symlink_to("loop")
    assert "\n" not in refusal(tmp_path / "loop")


def test_a_pdf(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["first line\nsecond line", "", "third page"])
    heard: list[tuple[int, int]] = []
    read = read_file(path, lambda page, pages: heard.append((page, pages)))
    assert [(p.number, p.blocks) for p in read.pages] == [
        (1, ("first line\nsecond line",)),
        (2, ()),
        (3, ("third page",)),
    ]
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_a_pdf_by_another_name_and_behind_rubbish(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["text"])
    other = tmp_path / "scan"
    other.write_bytes(b"\n\n" + path.read_bytes())
    assert read_file(other).pages[0].blocks == ("text",)


def test_pdfs_that_cannot_go_in(tmp_path: Path) -> None:
    locked = write_pdf(tmp_path / "locked.pdf", ["text"], password="secret")
    assert refusal(locked) == "is an encrypted PDF; take its password off first"
    scan = write_pdf(tmp_path / "scan.pdf", ["", ""])
    assert refusal(scan) == "has no text on any of its 2 pages; a scan needs OCR first"
    whole = write_pdf(tmp_path / "whole.pdf", ["text"] * 3).read_bytes()
    for cut in (len(whole) // 4, len(whole) // 2):
        broken = tmp_path / "broken.pdf"
        broken.write_bytes(whole[:cut])
        assert "\n" not in refusal(broken)


def test_a_pdf_that_only_forbids_something_can_be_read(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["text"])
    writer = PdfWriter(clone_from=PdfReader(path))
    writer.encrypt("", "owner", algorithm="RC4-128")
    with path.open("wb") as file:
        writer.write(file)
    assert read_file(path).pages[0].blocks == ("text",)


def test_nothing_of_pypdf_is_heard(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    data = bytearray(write_pdf(tmp_path / "a.pdf", ["text"]).read_bytes())
    at = data.rindex(b"startxref") + 10
    data[at : at + 1] = b"9"  # a cross-reference table that is not where it should be
    level = logging.getLogger("pypdf").level
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdf.pages_of(bytes(data))
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert logging.getLogger("pypdf").level == level


def test_characters_that_a_pdf_gives_and_no_database_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["text"])
    monkeypatch.setattr("pypdf.PageObject.extract_text", lambda *_: "Total\0 due\ud800.")
    read = read_file(path)
    assert read.pages[0].blocks == ("Total\ufffd due\ufffd.",)
    assert read.replaced == 2


def test_whatever_pypdf_raises_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["text"])

    def fall(*_: object) -> str:
        raise RecursionError("deep\ndown")

    monkeypatch.setattr("pypdf.PageObject.extract_text", fall)
    assert refusal(path) == "is damaged or cut off and cannot be read as a PDF (RecursionError)"


def test_memory_grows_with_the_text_and_not_faster() -> None:
    def peak(pages: int) -> int:
        text = "\f".join(f"page {n}\n\n{'word ' * 200}" for n in range(pages))
        tracemalloc.start()
        try:
            pages_of(text)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(2000) < 6 * peak(500)


def test_bytes_are_looked_at_once(tmp_path: Path) -> None:
    assert pdf.is_pdf(b"x" * 1000 + b"%PDF-1.4")
    assert not pdf.is_pdf(b"x" * 2000 + b"%PDF-1.4")
    assert not pdf.looks_like_pdf(tmp_path / "none")
