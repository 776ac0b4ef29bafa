"""Who is believed: a signature by a key and algorithms that were fixed before, and no header."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID, uuid4

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from fastapi import Header, HTTPException, Request

from citeledger.http import JwtPrincipal, Principal, create_app
from support.door import AUDIENCE, SECRET, Door, claims, principal, running, token
from support.records import READ, Records

FIRM = uuid4()
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())


def pem(key: Any) -> bytes:
    found = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert isinstance(found, bytes)
    return found


def forged(header: dict[str, Any] | bytes, payload: Any, signature: bytes = b"") -> str:
    """Write a token by hand."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return ".".join(
        base64.urlsafe_b64encode(p).rstrip(b"=").decode() for p in (head, body, signature)
    )


def stamped(secret: bytes, payload: dict[str, Any]) -> str:
    """Sign with HS256 by hand: with any secret, also one that no library would take."""
    signed_part = forged({"alg": "HS256", "typ": "JWT"}, payload).rpartition(".")[0]
    mac = hmac.digest(secret, signed_part.encode(), hashlib.sha256)
    return f"{signed_part}." + base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def signed(payload: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256") -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the secret is short for the larger algorithms
        return jwt.encode(payload, key, algorithm)


def test_a_good_token() -> None:
    person = uuid4()
    verify = principal().verify
    assert verify(token(FIRM, sub=str(person))) == Principal(FIRM, person, READ)
    assert verify(token(FIRM, permissions=...)) == Principal(FIRM, None, ())
    assert verify(token(FIRM, aud=["other", AUDIENCE])) == Principal(FIRM, None, READ)


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256")],
    ids=["RS256", "PS512", "ES256"],
)
def test_public_keys(private: Any, algorithm: str) -> None:
    good = signed(claims(FIRM), private, algorithm)
    for key in (pem(private), pem(private).decode(), private.public_key()):
        verifier = principal(key=key, algorithms=[algorithm])
        assert verifier.verify(good) == Principal(FIRM, None, READ)
        # The public key as a shared secret, which everybody knows.
        assert verifier.verify(stamped(pem(private), claims(FIRM))) is None
        assert verifier.verify(forged({"alg": "none"}, claims(FIRM))) is None
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    verifier = principal(key=pem(RSA), algorithms=["RS256"])
    assert verifier.verify(signed(claims(FIRM), other, "RS256")) is None


NOW = int(time.time())
ATTACKS: dict[str, Callable[[], str]] = {
    "empty": lambda: "",
    "no token": lambda: "nobody",
    "dots": lambda: "..",
    "none": lambda: forged({"alg": "none", "typ": "JWT"}, claims(FIRM)),
    "None": lambda: forged({"alg": "None"}, claims(FIRM)),
    "nOnE with a signature": lambda: forged({"alg": "nOnE"}, claims(FIRM), b"x"),
    "no algorithm": lambda: forged({"typ": "JWT"}, claims(FIRM)),
    "algorithm of another type": lambda: forged({"alg": ["HS256"]}, claims(FIRM)),
    "unknown algorithm": lambda: forged({"alg": "HS257"}, claims(FIRM), b"x"),
    "HS512 with the right key": lambda: signed(claims(FIRM), algorithm="HS512"),
    "HS384 with the right key": lambda: signed(claims(FIRM), algorithm="HS384"),
    "RS256": lambda: signed(claims(FIRM), RSA, "RS256"),
    "signature cut off": lambda: token(FIRM).rpartition(".")[0] + ".",
    "signature altered": lambda: token(FIRM)[:-4] + "AAAA",
    "body altered": lambda: ".".join(
        [token(FIRM).split(".")[0], token(uuid4()).split(".")[1], token(FIRM).split(".")[2]]
    ),
    "wrong key": lambda: signed(claims(FIRM), SECRET + "!"),
    "empty key": lambda: stamped(b"", claims(FIRM)),
    "no exp": lambda: token(FIRM, exp=...),
    "null exp": lambda: signed(claims(FIRM, exp=None)),
    "expired": lambda: token(FIRM, exp=NOW - 60),
    "exp is no number": lambda: token(FIRM, exp="tomorrow"),
    "not yet": lambda: token(FIRM, nbf=NOW + 600),
    "made in the future": lambda: token(FIRM, iat=NOW + 600),
    "no aud": lambda: token(FIRM, aud=...),
    "wrong aud": lambda: token(FIRM, aud="another"),
    "aud in another case": lambda: token(FIRM, aud=AUDIENCE.upper()),
    "empty list of aud": lambda: token(FIRM, aud=[]),
    "aud of another type": lambda: signed(claims(FIRM, aud=5)),
    "no firm": lambda: token(FIRM, firm_id=...),
    "null firm": lambda: token(FIRM, firm_id=None),
    "empty firm": lambda: token(FIRM, firm_id=""),
    "firm in braces": lambda: token(FIRM, firm_id="{" + str(FIRM) + "}"),
    "firm as a list": lambda: token(FIRM, firm_id=[str(FIRM)]),
    "sub is no id": lambda: token(FIRM, sub="somebody"),
    "sub is a number": lambda: signed(claims(FIRM, sub=5)),
    "permissions as a text": lambda: token(FIRM, permissions="matters:read"),
    "permissions as an object": lambda: token(FIRM, permissions={"matters:read": True}),
    "permissions of numbers": lambda: token(FIRM, permissions=[1]),
    "permissions with NUL": lambda: token(FIRM, permissions=["matters:read\0"]),
    "null permissions": lambda: token(FIRM, permissions=None),
    "header nested deeply": lambda: forged(b"[" * 20_000, claims(FIRM)),
    "body nested deeply": lambda: forged({"alg": "HS256"}, b"[" * 20_000),
    "header is no UTF-8": lambda: forged(b"\xff\xfe", claims(FIRM)),
    "header is null": lambda: forged(b"null", claims(FIRM)),
    "header is a list": lambda: forged(b'["alg"]', claims(FIRM)),
    "key id that points away": lambda: forged(
        {"alg": "HS256", "kid": "../../dev/null", "jku": "https://attacker.example"}, claims(FIRM)
    ),
    "critical extension": lambda: jwt.encode(
        claims(FIRM), SECRET, "HS256", headers={"crit": ["x"], "x": 1}
    ),
    "key inside": lambda: forged(
        {"alg": "HS256", "jwk": {"kty": "oct", "k": "AAAA"}}, claims(FIRM), b"x"
    ),
    "exp without end": lambda: jwt.api_jws.encode(
        json.dumps(claims(FIRM)).replace(str(claims(FIRM)["exp"]), "1e999").encode(), SECRET
    ),
    "not ASCII": lambda: token(FIRM)[:-1] + "\u00e9",
}


def test_the_tokens_by_hand_are_good_but_for_the_attack() -> None:
    assert principal().verify(stamped(SECRET.encode(), claims(FIRM))) is not None


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_is_not_believed(attack: Callable[[], str]) -> None:
    assert principal().verify(attack()) is None


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_it_is_one_answer(door: Door, attack: Callable[[], str]) -> None:
    text = attack()
    header = f"Bearer {text}".encode().decode("latin-1")
    answer = door.cite(headers={"Authorization": header})
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "A valid bearer token is required.",
    }


def test_the_leeway_is_small() -> None:
    assert principal().verify(token(FIRM, exp=int(time.time()) - 5)) is not None
    assert principal(leeway=0).verify(token(FIRM, exp=int(time.time()) - 5)) is None


def test_an_issuer_may_be_demanded() -> None:
    verify = principal(issuer="https://login.example").verify
    assert verify(token(FIRM, iss="https://login.example")) is not None
    assert verify(token(FIRM)) is None
    assert verify(token(FIRM, iss="https://login.example.evil")) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"algorithms": []},
        {"algorithms": "HS256"},
        {"algorithms": ["none"]},
        {"algorithms": ["HS256", "none"]},
        {"algorithms": ["HS256", "RS256"]},
        {"algorithms": ["XY"]},
        {"key": ""},
        {"key": "short"},
        {"key": "x" * 40, "algorithms": ["HS256", "HS512"]},
        {"key": pem(RSA)},
        {"key": pem(RSA).decode()},
        {"key": RSA.public_key()},
        {"key": None},
        {"key": '{"kty": "RSA", "n": "0123456789012345678901234567890"}'},
        {"key": "x" * 64, "algorithms": ["RS256"]},
        {"key": pem(EC), "algorithms": ["RS256"]},
        {"key": None, "algorithms": ["RS256"]},
        {"audience": ""},
        {"audience": None},
        {"issuer": ""},
        {"leeway": -1},
        {"leeway": 3600},
        {"leeway": float("nan")},
    ],
    ids=repr,
)
def test_a_verifier_that_could_not_be_trusted_is_not_made(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, jwt.InvalidKeyError)):
        principal(**wrong)


def test_headers_prove_nothing(door: Door, records: Records) -> None:
    named = {
        "X-Firm-Id": str(records.firm_id),
        "X-User": "somebody",
        "X-Forwarded-User": "somebody",
        "X-Permissions": "matters:read",
        "Cookie": f"token={token(records.firm_id)}",
    }
    assert door.cite(headers=named | {"Authorization": ""}).status == 401
    basic = base64.b64encode(b"user:password").decode()
    for value in (f"Basic {basic}", token(records.firm_id), f"Token {token(records.firm_id)}"):
        assert door.cite(headers={"Authorization": value}).status == 401
    assert door.send(
        f"/app/matters/{records.matter}/context/cite?access_token={token(records.firm_id)}"
    ).status == 401  # fmt: skip
    assert door.cite(headers={"Authorization": f"bearer {token(records.firm_id)}"}).status == 200


def test_two_tokens_are_none(door: Door, records: Records) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=10)
    connection.putrequest("POST", f"/app/matters/{records.matter}/context/cite")
    for firm in (records.firm_id, FIRM):
        connection.putheader("Authorization", f"Bearer {token(firm)}")
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.status == 401


def test_a_permission_that_the_database_does_not_know_as_a_name(door: Door) -> None:
    assert door.cite(permissions=["matters:read", "not a name"]).status == 401
    assert door.cite(permissions=["matters:write", "Matters:read"]).status == 403


# Other principals than the shipped one


@dataclass(frozen=True)
class Looks:
    """Looks like a principal, and is none."""

    firm_id: UUID
    user_id: UUID | None
    permissions: tuple[str, ...]


@pytest.fixture
def opened(dsn: str, records: Records) -> Callable[[Any], int]:
    """Open a door with a principal of the caller's, knock, and say what status came."""

    def knock(source: Any) -> int:
        with running(create_app(dsn, principal=source), records) as door:
            return door.cite(headers={"X-Who": "me"}).status

    return knock


def test_a_dependency_of_ones_own(opened: Callable[[Any], int], records: Records) -> None:
    me = Principal(records.firm_id, None, READ)

    async def later(request: Request) -> Principal | None:
        return me if request.headers.get("x-who") == "me" else None

    def nobody() -> Principal | None:
        return None

    def lookalike() -> Any:
        return Looks(records.firm_id, None, READ)

    def refuses() -> Principal:
        raise HTTPException(403, "the reason is nobody's business")

    def demands(x_missing: Annotated[str, Header()]) -> Principal:
        return me

    def breaks() -> Principal:
        raise RuntimeError("secret")

    assert opened(later) == 200
    assert opened(lambda: me) == 200
    assert opened(nobody) == 401
    assert opened(lookalike) == 401
    assert opened(refuses) == 403
    assert opened(demands) == 401
    assert opened(breaks) == 500
    assert opened(lambda: Principal(records.firm_id)) == 403


def test_there_is_no_door_without_a_principal(dsn: str) -> None:
    with pytest.raises(TypeError):
        create_app(dsn)  # type: ignore[call-arg]
    assert isinstance(principal(), JwtPrincipal)
