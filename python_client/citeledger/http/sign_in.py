"""A sign-in for demonstrations: whoever comes chooses who to be. Nothing else should use it.

The session is a signed token in a cookie, verified by the same verifier as any other token. A team
with real sign-in sets such a cookie itself and passes ``JwtPrincipal(cookie=...)`` alone.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import jwt

from .principal import JwtPrincipal, Principal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

COOKIE: Final = "citeledger_session"
_AUDIENCE: Final = "citeledger-demo"
_SECONDS: Final = 8 * 60 * 60
# One slash and then no second one, nor the backslash that browsers take for one.
_LOCAL: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom one can choose to be."""

    name: str
    what: str
    """What they may see, in a few words."""
    principal: Principal


class SignIn:
    """The people to choose from, and their sessions, which end with the process."""

    def __init__(self, people: Mapping[str, Person]) -> None:
        """Take the people by a key; the secret of the sessions is made here and kept here."""
        self.people = dict(people)
        self._secret = secrets.token_bytes(32)
        self.principal = JwtPrincipal(
            self._secret, algorithms=["HS256"], audience=_AUDIENCE, cookie=COOKIE
        )

    def name_of(self, who: Principal) -> str | None:
        """Return the name of a principal that is one of the people."""
        return next((p.name for p in self.people.values() if p.principal == who), None)

    def begin(self, response: Response, person: Person) -> None:
        """Set the cookie of a session."""
        who = person.principal
        claims = {
            "firm_id": str(who.firm_id),
            "permissions": list(who.permissions),
            "aud": _AUDIENCE,
            "exp": int(time.time()) + _SECONDS,
        }
        if who.user_id is not None:
            claims["sub"] = str(who.user_id)
        response.set_cookie(
            COOKIE,
            jwt.encode(claims, self._secret, "HS256"),
            max_age=_SECONDS,
            path="/",
            httponly=True,
            samesite="strict",
        )

    def end(self, response: Response) -> None:
        """Take the cookie back."""
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def local_path(path: str | None) -> str:
    """Return a path of our own to go on to; whatever might lead elsewhere becomes the start."""
    return path if path is not None and _LOCAL.fullmatch(path) else "/"


def same_origin(request: Request) -> bool:
    """Say whether a form was sent from one of our own pages, as far as the browser tells.

    Every browser says where a form comes from, in one of two headers that no page can write. What
    sends neither is no browser, and has no cookie that a page could borrow.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
