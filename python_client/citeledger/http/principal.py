"""Who asks: the principal of a request, and the one proof of it that this package ships.

A principal comes from a dependency of FastAPI that the caller of ``create_app`` names. It returns a
Principal, or None for a request that has none. Nothing here believes a header: the verifier below
believes a signature, by a key and algorithms that were fixed before any request came.
"""

# No postponed annotations here: FastAPI reads those of __call__.

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Final
from uuid import UUID

import jwt
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from citeledger.arguments import optional_uuid_argument, texts_argument, uuid_argument
from citeledger.errors import InvalidArgument

# The least length of a key in bytes, by the algorithm (RFC 7518, section 3.2).
_SHARED: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
_SIGNED: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
_PUBLIC_KEY: Final = re.compile(rb"-----BEGIN|^ssh-|^ecdsa-|^\s*\{")
_MOST_LEEWAY: Final = 300.0

_bearer: Final = HTTPBearer(
    auto_error=False,
    bearerFormat="JWT",
    scheme_name="bearer",
    description="A JWT with the claims firm_id, sub, permissions, aud and exp.",
)


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a request acts for: it becomes the context of the request's transaction."""

    firm_id: UUID
    user_id: UUID | None = None
    """The person; None sees no walled matter."""
    permissions: tuple[str, ...] = ()


class JwtPrincipal:
    """Verifies a JWT in the Authorization header or a cookie; its claims are the principal.

    ``firm_id`` must be there; ``sub`` and ``permissions`` may be absent, which is no person and no
    permission. A claim of another form makes the token unusable: there is then no principal.
    """

    def __init__(
        self,
        key: Any,
        *,
        algorithms: Collection[str],
        audience: str,
        issuer: str | None = None,
        leeway: float = 10.0,
        cookie: str | None = None,
    ) -> None:
        """Fix what will be believed.

        ``key`` is a shared secret for HS256 and its kin, else the public key: PEM, or an object of
        ``cryptography``. ``algorithms`` are all of one kind; what a token asks for is compared with
        them and never followed. ``leeway`` in seconds is for clocks that differ.

        ``cookie`` names a cookie that may carry the same token, for browsers, which send no
        header of their own. Who sets it says HttpOnly, Secure and SameSite. It is looked at only
        where there is no Authorization header.
        """
        wanted = [] if isinstance(algorithms, str) else list(algorithms)
        if not wanted or not (set(wanted) <= set(_SHARED) or set(wanted) <= _SIGNED):
            msg = "algorithms: a list, of HS256 and its kin or of signatures with a public key"
            raise ValueError(msg)
        if set(wanted) <= set(_SHARED):
            secret = key.encode() if isinstance(key, str) else key
            if not isinstance(secret, bytes):
                msg = "key: a shared secret is bytes or str"
                raise TypeError(msg)
            if _PUBLIC_KEY.search(secret):
                # Anyone knows a public key, and could sign with it as a secret.
                msg = "key: a key in a file format is no shared secret"
                raise ValueError(msg)
            least = max(_SHARED[name] for name in wanted)
            if len(secret) < least:
                msg = f"key: {least} random bytes are the least for these algorithms"
                raise ValueError(msg)
        if not audience or issuer == "":
            msg = "audience: what a token must be for; issuer: who must have made it, or None"
            raise ValueError(msg)
        if not 0 <= leeway <= _MOST_LEEWAY:
            msg = f"leeway: seconds from 0 to {_MOST_LEEWAY:g}"
            raise ValueError(msg)
        self._key = key
        self._algorithms = wanted
        self._audience = audience
        self._issuer = issuer
        self._leeway = leeway
        self._cookie = cookie
        # A key that does not fit its algorithm is a fault of today, not of each request to come.
        for name in wanted:
            algorithm = jwt.get_algorithm_by_name(name)
            algorithm.prepare_key(key)

    # Asynchronous, so that no token waits for a thread while those wait for the database.
    async def __call__(
        self,
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    ) -> Principal | None:
        """Return the principal that the request's token proves, or None."""
        sent = request.headers.getlist("authorization")
        if not sent and self._cookie is not None:
            token = request.cookies.get(self._cookie)
            return None if token is None else self.verify(token)
        # Of two headers, a proxy may have looked at the other one.
        if credentials is None or len(sent) != 1:
            return None
        return self.verify(credentials.credentials)

    def verify(self, token: str) -> Principal | None:
        """Return the principal that a token proves, or None, whatever is wrong with it."""
        required = ["exp", "aud", *(["iss"] if self._issuer is not None else [])]
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=self._algorithms,
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway,
                options={"require": required},
            )
        except Exception:
            # Any: a token is hostile input, and nesting or numbers in it may trip its reader.
            return None
        return _principal(claims)


def _principal(claims: dict[str, Any]) -> Principal | None:
    try:
        return Principal(
            uuid_argument("firm_id", claims.get("firm_id")),
            optional_uuid_argument("sub", claims.get("sub")),
            tuple(texts_argument("permissions", claims.get("permissions", ()))),
        )
    except InvalidArgument:
        return None
