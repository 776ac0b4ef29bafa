"""The application of docs/http.md runs as it stands there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from support.door import running
from support.pages import REPOSITORY, blocks
from support.records import Records

PAGE = "docs/http.md"


def test_the_application(
    dsn: str, records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = (b for b in blocks(PAGE) if b.language == "python")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (tmp_path / "jwt_public_key.pem").write_bytes(public)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    text = block.text.replace("dbname=mydb user=my_door", dsn)
    exec(compile("\n" * (block.line - 1) + text, str(REPOSITORY / PAGE), "exec"), scope)
    claims = {
        "firm_id": str(records.firm_id),
        "permissions": ["matters:read"],
        "aud": "citeledger",
        "iss": "https://login.example.com",
        "exp": int(time.time()) + 60,
    }
    with running(scope["app"], records) as door:
        assert door.cite(bearer=jwt.encode(claims, key, "RS256")).json["verified"]
        assert door.cite(bearer=jwt.encode(claims | {"iss": "x"}, key, "RS256")).status == 401
        assert door.cite().status == 401


def test_every_status_is_explained() -> None:
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    document = json.loads((REPOSITORY / "openapi" / "citeledger.json").read_text(encoding="utf-8"))
    (path,) = document["paths"].values()
    for status in path["post"]["responses"]:
        assert status in text or status == "405"


def test_the_problem_that_is_shown_is_the_one_that_is_sent(dsn: str, records: Records) -> None:
    from citeledger.http import create_app
    from support.door import principal

    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    shown = text.split("Content-Type: application/problem+json\n\n")[1].split("```")[0]
    with running(create_app(dsn, principal=principal()), records) as door:
        assert door.cite(records.span(page_number=0)).json == json.loads(shown)
