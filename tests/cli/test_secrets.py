"""No password is ever printed, whatever is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

from citeledger.cli import group
from citeledger.cli.exits import CommandError, Exit
from citeledger.cli.secrets import redact, remember
from support.deploy import REPOSITORY

from .conftest import Run, run_alone

# Each holds the word, or parts of it where the text is malformed.
WORD = "hunter2"
UNREACHABLE = [
    f"postgresql://someone:[{WORD}@127.0.0.1:1/db",
    f"postgresql://someone:{WORD}@127.0.0.1:1/db",
    f"postgresql+psycopg://someone:{WORD}@127.0.0.1:1/db",
    f"host=127.0.0.1 port=1 user=someone password={WORD} dbname=db",
    f"host=127.0.0.1 port=1 password='{WORD}'",
    f"postgresql://127.0.0.1:1/db?password={WORD}",
]
UNREADABLE = [
    f"postgresql://someone:pass@{WORD}@127.0.0.1:1/db",
    f"postgresql://someone:pass/{WORD}@127.0.0.1:1/db",
    f"postgresql://someone:{WORD}/pass@127.0.0.1:1/db",
    f"postgresql://someone:{WORD}%@127.0.0.1:1/db",
    f"postgresql://someone:{WORD}%zz@127.0.0.1:1/db",
    f"postgresql://someone:\udce9{WORD}@127.0.0.1:1/db",
    f"password=pass {WORD}",
    f"password='pass' {WORD}",
    f"password='{WORD}",
    f"passwort={WORD}",
    WORD,
]


@pytest.mark.parametrize("url", UNREACHABLE)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_server_that_is_not_there(url: str, more: tuple[str, ...]) -> None:
    ran = run_alone("check", *more, DATABASE_URL=url)
    assert ran.code == Exit.UNREACHABLE
    assert WORD not in ran.out + ran.err
    assert len(ran.err.splitlines()) == 1
    assert "127.0.0.1" in ran.err


@pytest.mark.parametrize("url", UNREADABLE)
def test_a_url_that_cannot_be_read(url: str) -> None:
    for ran in (run_alone("status", DATABASE_URL=url), run_alone("status", "--database-url", url)):
        assert ran.code == Exit.USAGE
        assert WORD not in ran.out + ran.err
        assert len(ran.err.splitlines()) == 1


def test_the_password_of_the_environment() -> None:
    ran = run_alone("status", PGHOST=f"/nowhere/{WORD}", PGPASSWORD=WORD)
    assert ran.code == Exit.UNREACHABLE
    assert WORD not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", UNREACHABLE[0]),
        (UNREACHABLE[0],),
        ("check", f"--database={UNREACHABLE[0]}"),
        ("cite", "--page", UNREACHABLE[0]),
        ("check", "--firm", "x", UNREACHABLE[2]),
    ],
)
def test_a_url_in_the_wrong_place(arguments: tuple[str, ...]) -> None:
    ran = run_alone(*arguments)
    assert ran.code == Exit.USAGE
    assert WORD not in ran.out + ran.err


def test_an_error_that_nobody_expected(
    run: Run, monkeypatch: pytest.MonkeyPatch, db: object
) -> None:
    def fall(*_: object) -> None:
        raise ZeroDivisionError(WORD)

    monkeypatch.setattr("citeledger.cli.deployment.inspect", fall)
    ran = run("status")
    assert ran.code == Exit.BUG
    assert WORD not in ran.err
    assert "ZeroDivisionError at test_secrets.py:" in ran.err
    assert "Traceback" not in ran.err


def test_a_traceback_of_a_process_has_none() -> None:
    code = (
        "from citeledger.cli import connection\n"
        "def fall(*a, **k): raise RuntimeError('hunter2')\n"
        "connection.psycopg.connect = fall\n"
        "from citeledger.cli import main\n"
        "raise SystemExit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "--database-url", UNREACHABLE[0]],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={"PYTHONPATH": str(REPOSITORY / "python_client")},
    )
    assert done.returncode == Exit.BUG
    assert WORD not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_redact() -> None:
    remember("s3cret")
    assert redact("the s3cret is out") == "the *** is out"
    assert redact("see postgresql://u:p@w@h/db?x=1") == "see postgresql://u:***@h/db?x=1"
    assert redact("sslpassword = 'a b' password=c d") == "sslpassword=*** password=*** d"
    assert redact("nothing to hide, u@h") == "nothing to hide, u@h"


def test_a_short_password_is_not_told_by_gaps_in_words() -> None:
    remember("as")
    assert redact("no database of user as") == "no database of user ***"


def test_what_is_reported_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = group.report(CommandError("a\nb \x1b[31m\u202e", hint="c\r\nd"))
    assert code == Exit.USAGE
    assert capsys.readouterr().err == "citeledger: error: a b \\u001b[31m\\u202e HINT: c d\n"
