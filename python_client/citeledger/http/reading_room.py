"""The reading room: pages for people, rendered here, readable without any script.

Each page is one read-only transaction under the rights of who asks. Whatever is not there for them
is one page of one status, byte for byte; ids that are malformed are not there either.
"""

# No postponed annotations here: FastAPI reads those of the functions below, and they name locals.

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Final
from urllib.parse import quote

import psycopg
from fastapi import Depends, FastAPI, Request
from psycopg_pool import ConnectionPool
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import HTMLResponse, RedirectResponse, Response

from citeledger.errors import CiteLedgerError, InvalidArgument, NotFound
from citeledger.pages import Pages, Reading, reading
from citeledger.pages.render import icon, style_name, style_sheet

from .principal import Principal
from .problems import Problem
from .sign_in import SignIn, local_path, same_origin

_LOG: Final = logging.getLogger("citeledger.http")

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not no-referrer: a browser then hides from us where one of our own forms was sent from.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""What every page says to the browser."""

_FIXED: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PATHS: Final = re.compile(r"/(?:matters|record|chats|sign-in|sign-out)(?:/|\Z)")
_NUMBER: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_INT4_MAX: Final = 2**31 - 1


class _MatterNumber(Convertor[str]):
    """Whatever stands before the last ``/record/doc/``: a matter number may hold slashes too."""

    regex = r"[\s\S]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("matter_number", _MatterNumber())


def add_reading_room(
    app: FastAPI,
    pool: ConnectionPool[Any],
    authenticated: Callable[..., Any],
    sign_in: SignIn | None,
) -> None:
    """Add the pages to the application."""
    app.state.reading_room = True
    app.state.sign_in = sign_in

    def page(path: str) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
        return app.get(path, include_in_schema=False, response_class=HTMLResponse)

    @page("/chats/{chat_id}")
    def chat(
        request: Request, chat_id: str, who: Annotated[Principal, Depends(authenticated)]
    ) -> Response:
        with _reading(pool, who) as room:
            found = room.chat(chat_id, check=False)
        return _html(_pages(request, who).chat(found))

    @page("/chats/{chat_id}/entries/{entry_id}")
    def entry(
        request: Request,
        chat_id: str,
        entry_id: str,
        who: Annotated[Principal, Depends(authenticated)],
    ) -> Response:
        number = _number(request, "page", 1)
        with _reading(pool, who) as room:
            found = room.entry(chat_id, entry_id, number)
        return _html(_pages(request, who).page(found))

    @page("/matters/{matter_number:matter_number}/record/doc/{document_id}")
    def document(
        request: Request,
        matter_number: str,
        document_id: str,
        who: Annotated[Principal, Depends(authenticated)],
    ) -> Response:
        number, block = _number(request, "page", 1), _number(request, "block", 0)
        with _reading(pool, who) as room:
            found = room.page(matter_number, document_id, number, block)
        return _html(_pages(request, who).page(found))

    # A browser shortens a path that has . or .. between two slashes, which are numbers of matters
    # like any other; what is left of the path then says which of the two it was.
    @page("/matters/record/doc/{document_id}")
    def document_of_dot(
        request: Request, document_id: str, who: Annotated[Principal, Depends(authenticated)]
    ) -> Response:
        return document(request, ".", document_id, who)

    @page("/record/doc/{document_id}")
    def document_of_two_dots(
        request: Request, document_id: str, who: Annotated[Principal, Depends(authenticated)]
    ) -> Response:
        return document(request, "..", document_id, who)

    @app.get(f"/reading-room/style-{style_name()}.css", include_in_schema=False)
    async def style() -> Response:
        return Response(style_sheet(), media_type="text/css", headers=_FIXED)

    @app.get("/reading-room/icon.svg", include_in_schema=False)
    async def picture() -> Response:
        return Response(icon(), media_type="image/svg+xml", headers=_FIXED)

    if sign_in is not None:
        _add_sign_in(app, pool, sign_in, authenticated)


def _add_sign_in(
    app: FastAPI,
    pool: ConnectionPool[Any],
    sign_in: SignIn,
    authenticated: Callable[..., Any],
) -> None:
    @app.get("/", include_in_schema=False)
    def chats(request: Request, who: Annotated[Principal, Depends(authenticated)]) -> Response:
        with _reading(pool, who) as room:
            found = room.chats()
        return _html(_pages(request, who).chats(found))

    @app.get("/sign-in", include_in_schema=False)
    async def choice(request: Request) -> Response:
        then = local_path(request.query_params.get("then"))
        people = [(key, p.name, p.what) for key, p in sign_in.people.items()]
        return _html(_pages(request, None).sign_in(people, then))

    @app.post("/sign-in", include_in_schema=False)
    async def chosen(request: Request) -> Response:
        if not same_origin(request):
            raise Problem(403, "The form was sent from another site.")
        async with request.form(max_files=0, max_fields=4) as form:
            key, then = form.get("person"), form.get("then")
        person = sign_in.people.get(key) if isinstance(key, str) else None
        if person is None:
            raise Problem(400)
        path = local_path(then if isinstance(then, str) else None)
        response = RedirectResponse(_root(request) + path, 303, HEADERS)
        sign_in.begin(response, person)
        return response

    @app.post("/sign-out", include_in_schema=False)
    async def out(request: Request) -> Response:
        if not same_origin(request):
            raise Problem(403, "The form was sent from another site.")
        response = RedirectResponse(f"{_root(request)}/sign-in", 303, HEADERS)
        sign_in.end(response)
        return response


@contextmanager
def _reading(pool: ConnectionPool[Any], who: Principal) -> Iterator[Reading]:
    """Read for the principal, and say what a refusal of the database is over HTTP."""
    permitted = False
    try:
        with reading(
            pool, firm_id=who.firm_id, user_id=who.user_id, permissions=who.permissions
        ) as room:
            if not room.may_read():
                raise Problem(403)
            permitted = True
            yield room
    except NotFound:
        raise Problem(404) from None
    except InvalidArgument:
        # Of the principal; of the path everything malformed is not found.
        raise Problem(500 if permitted else 401) from None
    except (psycopg.Error, CiteLedgerError):
        # Who has the permission and is refused is the login: it lacks citeledger_app.
        _LOG.exception("the reading room could not read")
        raise Problem(503) from None


def _number(request: Request, name: str, least: int) -> int | None:
    """Take a number of the query. Absent or empty is none; anything but a number leads nowhere."""
    values = request.query_params.getlist(name)
    if values in ([], [""]):
        return None
    value = int(values[0]) if len(values) == 1 and _NUMBER.fullmatch(values[0]) else -1
    if not least <= value <= _INT4_MAX:
        raise Problem(404)
    return value


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _pages(request: Request, who: Principal | None) -> Pages:
    sign_in: SignIn | None = request.app.state.sign_in
    if sign_in is None:
        return Pages(_root(request))
    return Pages(_root(request), person=None if who is None else sign_in.name_of(who), home=True)


def _html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(text, status, HEADERS | dict(headers or {}))


def refused_page(
    request: Request, problem: Problem, headers: Mapping[str, str] | None = None
) -> Response | None:
    """Write a refusal as a page when a page was asked for; None leaves it to others."""
    if not getattr(request.app.state, "reading_room", False):
        return None
    sign_in: SignIn | None = request.app.state.sign_in
    root = _root(request)
    path = str(request.scope["path"]).removeprefix(root)
    if not (_PATHS.match(path) or (path == "/" and sign_in is not None)):
        return None
    choice, title, detail = None, problem.title, problem.detail
    if problem.status == 401:
        title, detail = "Please sign in", "This page is for people who are known here."
        if sign_in is not None:
            asked = request.scope.get("raw_path", b"").decode("ascii", "replace")
            query = request.scope.get("query_string", b"").decode("ascii", "replace")
            then = local_path(asked.removeprefix(root) + (f"?{query}" if query else ""))
            choice = f"{root}/sign-in?then={quote(then, safe='')}"
    text = Pages(root, home=sign_in is not None).refusal(title, detail, sign_in=choice)
    # What the problem itself says, for example when to come back.
    own = problem.response(headers).headers
    kept = {k: v for k, v in own.items() if k in ("www-authenticate", "retry-after", "allow")}
    return _html(text, problem.status, kept)
