"""The OpenAPI document: committed, fresh, whole; and schemathesis finds no way round it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.deploy import REPOSITORY
from support.door import Door, token
from support.records import Records

FILE = REPOSITORY / "openapi" / "citeledger.json"
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PATH = "/app/matters/{matter_id}/context/cite"
OPERATION: dict[str, Any] = DOCUMENT["paths"][PATH]["post"]

# Checks of schemathesis that fit a door which looks things up: data that fits the schema may still
# be refused, as an end before the start or a quote that cannot be seen.
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)


def test_the_file_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "tools/openapi_json.py", "--check"],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_it_is_noticed_when_it_is_stale(tmp_path: Path) -> None:
    script = (REPOSITORY / "tools" / "openapi_json.py").read_text(encoding="utf-8")
    (tmp_path / "tools").mkdir()
    (tmp_path / "openapi").mkdir()
    (tmp_path / "python_client").symlink_to(REPOSITORY / "python_client")
    copied = tmp_path / "tools" / "openapi_json.py"
    copied.write_text(script, encoding="utf-8")
    (tmp_path / "openapi" / "citeledger.json").write_text("{}\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(copied), "--check"], check=False)
    assert done.returncode == 1
    assert subprocess.run([sys.executable, str(copied)], check=False).returncode == 0
    assert subprocess.run([sys.executable, str(copied), "--check"], check=False).returncode == 0


def test_there_is_one_operation() -> None:
    assert list(DOCUMENT["paths"]) == [PATH]
    assert list(DOCUMENT["paths"][PATH]) == ["post"]
    assert OPERATION["operationId"] == "contextCite"
    assert OPERATION["security"] == [{"bearer": []}]


def test_every_status_is_documented() -> None:
    assert set(OPERATION["responses"]) == {
        "200", "401", "403", "404", "405", "413", "415", "422", "503",
    }  # fmt: skip
    for status, response in OPERATION["responses"].items():
        kind = "application/json" if status == "200" else "application/problem+json"
        assert list(response["content"]) == [kind]
    field = OPERATION["responses"]["422"]["content"]["application/problem+json"]["schema"]
    assert "field" in field["required"]


def test_the_span_is_the_clients() -> None:
    import dataclasses

    from citeledger import CiteResolution, SourceSpan

    body = OPERATION["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {f.name for f in dataclasses.fields(SourceSpan)}
    assert body["additionalProperties"] is False
    schemas = DOCUMENT["components"]["schemas"]
    for cls in (CiteResolution, SourceSpan):
        assert set(schemas[cls.__name__]["properties"]) == {f.name for f in dataclasses.fields(cls)}


@pytest.fixture
def known(records: Records, tmp_path: Path) -> Path:
    """Write the document with ids that are there, so that what is generated gets past the 404."""
    document = copy.deepcopy(DOCUMENT)
    operation = document["paths"][PATH]["post"]
    (matter,) = operation["parameters"]
    matter["schema"] = {"anyOf": [{"const": str(records.matter)}, matter["schema"]]}
    properties = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
    properties["document_id"] = {
        "anyOf": [
            {"type": "string", "enum": [str(records.record), *map(str, others(records))]},
            properties["document_id"],
        ]
    }
    properties["page_number"]["examples"] = [1]
    properties["quote"]["examples"] = [records.span()["quote"]]
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def others(records: Records) -> list[Any]:
    return [document for _, document in records.not_there.values()]


def test_schemathesis(door: Door, records: Records, known: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("st")),
            "run",
            str(known),
            f"--url=http://127.0.0.1:{door.port}",
            f"--header=Authorization: Bearer {token(records.firm_id)}",
            f"--checks={','.join(CHECKS)}",
            "--mode=all",
            "--phases=examples,coverage,fuzzing",
            "--max-examples=300",
            "--seed=1",
            "--continue-on-failure",
            "--suppress-health-check=all",
            "--generation-database=none",
            "--no-color",
            f"--report-har-path={tmp_path / 'run.har'}",
        ],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout, done.stdout
    # Counted by hand: it asked often, it came through, and it got nothing that is not documented.
    har = json.loads((tmp_path / "run.har").read_text(encoding="utf-8"))
    statuses = [entry["response"]["status"] for entry in har["log"]["entries"]]
    assert len(statuses) > 300
    assert {200, 401, 404, 422} <= set(statuses)
    assert {str(status) for status in statuses} <= set(OPERATION["responses"])
