"""The application: the path that cites, checked in one order, and the reading room beside it."""

# No postponed annotations here: FastAPI reads those of the functions below, and they name locals.

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Annotated, Any, Final
from uuid import UUID

import psycopg
from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from psycopg_pool import ConnectionPool
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citeledger._version import __version__
from citeledger.arguments import uuid_argument
from citeledger.client import CiteLedger
from citeledger.errors import CiteLedgerError, InvalidArgument
from citeledger.rows import CiteResolution

from .body import read_body, read_json, require_json
from .documentation import REQUEST_BODY, RESPONSES, SUMMARY
from .principal import Principal
from .problems import Problem, problem_of
from .reading_room import add_reading_room, refused_page
from .sign_in import SignIn

PrincipalSource = Callable[..., Principal | None] | Callable[..., Awaitable[Principal | None]]
"""A dependency of FastAPI that returns the principal of a request, or None."""

PERMISSION: Final = "matters:read"

_LOG: Final = logging.getLogger("citeledger.http")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def create_app(
    pool_or_dsn: ConnectionPool[Any] | str,
    *,
    principal: PrincipalSource,
    max_body_bytes: int = 65_536,
    reading_room: bool = True,
    sign_in: SignIn | None = None,
) -> FastAPI:
    """Make the application.

    A pool stays the caller's, to open and to close. From a DSN the application makes a pool of its
    own, for as long as it runs. ``principal`` says who asks, for example a JwtPrincipal; without
    one there is no application.

    The login needs ``citeledger_reader`` and nothing more to cite. The pages of the reading room
    show titles and texts too, for which it needs ``citeledger_app``; without that they are not
    available, and ``reading_room=False`` leaves them out. ``sign_in`` lets people choose who they
    are; it is for demonstrations.
    """
    if isinstance(pool_or_dsn, str):
        pool: ConnectionPool[Any] = ConnectionPool(
            pool_or_dsn,
            min_size=1,
            max_size=8,
            # Whoever would wait longer, or in a longer queue, is better served by a 503 now.
            timeout=5.0,
            max_waiting=16,
            # Given up soon, for it then tries anew at the next request.
            reconnect_timeout=5.0,
            kwargs={"autocommit": True, "connect_timeout": 5},
            check=ConnectionPool.check_connection,
            open=False,
        )
    else:
        pool = pool_or_dsn
    client = CiteLedger(pool)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if pool is pool_or_dsn:
            yield
            return
        # Not waited for: while the database is away, requests are answered, with 503.
        await run_in_threadpool(pool.open)
        try:
            yield
        finally:
            await run_in_threadpool(pool.close)

    app = FastAPI(
        title="citeledger",
        version=__version__,
        description=SUMMARY,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_middleware(_Headers)
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(HTTPException, _refused_by_the_framework)
    app.add_exception_handler(RequestValidationError, _no_principal)
    app.add_exception_handler(Exception, _failed)

    async def authenticated(who: Annotated[Principal | None, Depends(principal)]) -> Principal:
        if not isinstance(who, Principal):
            raise Problem(401)
        return who

    @app.post(
        "/app/matters/{matter_id}/context/cite",
        operation_id="contextCite",
        summary="Check a quote against the live page",
        response_model=CiteResolution,
        response_description="The quote was compared: it holds, and has a link, or it does not.",
        responses=RESPONSES,
        openapi_extra={"requestBody": REQUEST_BODY},
    )
    async def context_cite(
        request: Request,
        # Not a UUID to FastAPI, whose reader takes more forms of one than the database.
        matter_id: Annotated[str, Path(json_schema_extra={"format": "uuid"})],
        who: Annotated[Principal, Depends(authenticated)],
    ) -> CiteResolution:
        body = await read_body(request, max_body_bytes)
        try:
            matter = uuid_argument("matter_id", matter_id)
        except InvalidArgument:
            # A path that is no path of ours leads nowhere.
            raise Problem(404) from None
        return await run_in_threadpool(_cite, client, who, matter, request, body)

    if reading_room:
        add_reading_room(app, pool, authenticated, sign_in)
    return app


def _cite(
    client: CiteLedger, who: Principal, matter_id: UUID, request: Request, body: bytes
) -> CiteResolution:
    """Cite in a transaction of its own. Who may not read is told nothing about the span."""
    try:
        with _acting_for(client, who):
            if not client.has_permission(PERMISSION):
                raise Problem(403)
            require_json(request)
            return client.cite(matter_id, read_json(body))
    except (psycopg.Error, CiteLedgerError) as error:
        problem = problem_of(error)
        if problem.status == 503:
            _LOG.exception("the database did not answer")
        raise problem from None


@contextmanager
def _acting_for(client: CiteLedger, who: Principal) -> Iterator[None]:
    """Act for the principal; one that the database does not take is none."""
    with ExitStack() as stack:
        try:
            stack.enter_context(
                client.context(
                    firm_id=who.firm_id, user_id=who.user_id, permissions=who.permissions
                )
            )
        except InvalidArgument:
            raise Problem(401) from None
        yield


class _Headers:
    """Adds the headers that every response has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    # The pages have a policy of their own.
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


async def _refused(request: Request, error: Exception) -> Response:
    return _refusal(request, problem_of(error))


async def _refused_by_the_framework(request: Request, error: Exception) -> Response:
    """Write the framework's own refusals, a path or method that is not there, as problems too."""
    if not isinstance(error, HTTPException):
        return await _failed(request, error)
    return _refusal(request, Problem(error.status_code), error.headers)


async def _no_principal(request: Request, _error: Exception) -> Response:
    """Only the dependency of the principal has arguments that FastAPI reads."""
    return _refusal(request, Problem(401))


async def _failed(request: Request, _error: Exception) -> Response:
    """Say that something is broken, and leave the rest to the server's log."""
    return _refusal(request, Problem(500), _HEADERS)


def _refusal(
    request: Request, problem: Problem, headers: Mapping[str, str] | None = None
) -> Response:
    """Write a refusal for who asked: a page for people, a problem for programs."""
    return refused_page(request, problem, headers) or problem.response(headers)
