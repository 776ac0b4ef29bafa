"""The wheel: typed, and with the schema that it speaks to."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import citeledger
from citeledger.schema import installation_sql
from support.deploy import REPOSITORY, checked

SQL = REPOSITORY / "sql" / "citeledger.sql"

PROBE = """
import citeledger, citeledger.schema
from citeledger.errors import catalogue
assert catalogue()
print(citeledger.__file__)
print(citeledger.schema.installation_sql(), end="")
"""


def test_the_wheel_carries_the_schema(tmp_path: Path) -> None:
    checked(
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
            check=False,
            cwd=REPOSITORY,
            capture_output=True,
            encoding="utf-8",
        )
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"citeledger-{citeledger.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    for name in ("py.typed", "errors.toml", "sql/citeledger.sql"):
        assert f"citeledger/{name}" in names
    assert not [n for n in names if not n.startswith(("citeledger/", "citeledger-"))]
    # From the wheel alone, with no checkout around it.
    done = checked(
        subprocess.run(
            [
                sys.executable,
                "-c",
                PROBE,
            ],
            check=False,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            encoding="utf-8",
        )
    )
    first, rest = done.stdout.split("\n", maxsplit=1)
    assert Path(first).is_relative_to(tmp_path / "site")
    assert rest == SQL.read_text(encoding="utf-8")


def test_a_checkout_uses_its_own_file() -> None:
    assert installation_sql() == SQL.read_text(encoding="utf-8")


def test_the_version_of_package_and_schema_agree() -> None:
    assert citeledger.__version__ in citeledger.SUPPORTED_SCHEMA


def test_everything_exported_is_there() -> None:
    for name in citeledger.__all__:
        assert hasattr(citeledger, name)
