"""The wheel: what is in it, and that it works where nothing else of the project is.

The environments that it is installed in are new and empty, so this needs a network, or whatever
else pip takes packages from; without one the tests are skipped and say so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import citeledger
from support.deploy import REPOSITORY, checked

PACKAGE = REPOSITORY / "python_client" / "citeledger"
# What pip says when it is not the package that is at fault.
_AWAY = re.compile(
    "name resolution|Name or service not known|Network is unreachable|Connection refused"
    "|NewConnectionError|ConnectTimeout|ReadTimeout|timed out|ProxyError"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    checked(
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
            check=False,
            cwd=REPOSITORY,
            capture_output=True,
            encoding="utf-8",
        )
    )
    (built,) = folder.glob("*.whl")
    return built


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with the wheel in it."""

    place: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, away from the checkout."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PG"))}
        program, *arguments = command
        return subprocess.run(
            [str(self.place / "bin" / program), *arguments],
            check=False,
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            env=kept | {"PYTHONUTF8": "1", "DATABASE_URL": "postgresql://u@127.0.0.1:1/db"},
        )

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run Python code."""
        return self.run("python", "-I", "-c", code)


def install(place: Path, what: str) -> Environment:
    """Make an environment and install the wheel, or skip where packages cannot be had."""
    checked(
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(place)],
            check=False,
            capture_output=True,
            encoding="utf-8",
        )
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(place / "bin" / "python")),
            *("--disable-pip-version-check", "--retries", "1", "--timeout", "10"),
            *("install", "--quiet", "--no-compile", "--only-binary", ":all:", what),
        ],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode != 0 and _AWAY.search(done.stderr):
        pytest.skip(f"pip cannot reach any packages: {done.stderr.strip().splitlines()[-1]}")
    checked(done)
    return Environment(place)


@pytest.fixture(scope="module")
def bare(folder: Path, wheel: Path) -> Environment:
    """Give an environment with the library alone."""
    return install(folder / "bare", str(wheel))


@pytest.fixture(scope="module")
def full(folder: Path, wheel: Path) -> Environment:
    """Give an environment with what works at a shell."""
    return install(folder / "full", f"{wheel}[cli,embedded,pdf]")


def test_everything_of_the_package_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert f"citeledger/{path.relative_to(PACKAGE)}" in names
    for path in (REPOSITORY / "sql").iterdir():
        assert f"citeledger/sql/{path.name}" in names
    for name in ("py.typed", "errors.toml", "sql/citeledger.sql"):
        assert f"citeledger/{name}" in names
    assert not [name for name in names if not name.startswith(("citeledger/", "citeledger-"))]


def test_the_library_needs_psycopg_alone(bare: Environment) -> None:
    done = checked(
        bare.python(
            "import importlib.metadata as m, re, citeledger, citeledger.schema, citeledger.errors\n"
            "assert citeledger.errors.catalogue() and citeledger.schema.installation_sql()\n"
            "print(citeledger.__version__)\n"
            "print(*sorted(re.sub('[-_.]+', '-', d.name).lower() for d in m.distributions()))"
        )
    )
    version, names = done.stdout.splitlines()
    assert version == citeledger.__version__
    assert set(names.split()) == {
        "citeledger", "psycopg", "psycopg-binary", "psycopg-pool", "typing-extensions",
    }  # fmt: skip


def test_without_its_extra_the_command_says_what_to_install(bare: Environment) -> None:
    for arguments in ((), ("--help",), ("demo",), ("check", "--json")):
        done = bare.run("citeledger", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "citeledger: the command line needs the extra cli: in the folder of citeledger, run "
            "pip install '.[cli]'\n"
        )


def test_the_command_works_from_the_wheel(full: Environment) -> None:
    done = checked(full.run("citeledger", "--help"))
    for command in ("demo", "deploy", "ingest", "report", "serve", "check"):
        assert command in done.stdout
    done = full.run("citeledger", "status")
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)
    done = full.run("citeledger", "serve", "--demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("pip install '.[http]'\n")
    done = checked(
        full.python(
            "from citeledger.cli import deployment\n"
            "from citeledger.ingest import read_file\n"
            "print(deployment.bundled_version(), deployment.upgrade_scripts())"
        )
    )
    assert done.stdout.startswith(citeledger.__version__)


def test_the_demo_works_from_the_wheel(full: Environment) -> None:
    done = checked(full.run("citeledger", "demo"))
    for verdict in ("FIDUCIARY GRADE", "SUPPORTED ONLY", "FLAGGED"):
        assert f"[{verdict}]" in done.stdout
    assert "Nothing is left behind" in done.stdout
    assert done.stderr == ""
