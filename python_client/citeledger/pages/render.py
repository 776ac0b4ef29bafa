"""Renders the view model as HTML: everything escaped, nothing fetched, nothing run."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from citeledger._version import __version__

from . import words

if TYPE_CHECKING:
    from .views import ChatLine, ChatView, PageView

# White space and controls, the backslash that browsers take for a slash, and direction marks.
_NO_URL: Final = re.compile(
    r"[\s\\\x00-\x20\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def web_link(url: str | None) -> str | None:
    """Return a URL that may become a link: http or https, a host, and nothing that disguises it."""
    if url is None or _NO_URL.search(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return None
    return url


def when(value: datetime) -> str:
    """Write a time for people, in UTC."""
    utc = value.astimezone(UTC)
    return f"{utc.day} {utc:%B %Y, %H:%M:%S} UTC"


def share(value: float) -> str:
    """Write a confidence: never rounded up to a certainty."""
    text = f"{value:.2f}"
    return f"{value:.4g}" if text == "1.00" and value < 1 else text


def exact(text: str) -> Markup:
    """Escape text so that a browser has the very characters: it would read CR LF as LF."""
    return Markup(str(escape(text)).replace("\r", "&#13;"))  # noqa: S704 - escaped just here


def kind_words(kind: str) -> str:
    """Write what kind of source it is."""
    known = {"kb_document": "Document", "caselaw": "Case law"}
    return known.get(kind, kind.replace("_", " ").capitalize())


@cache
def style_sheet() -> str:
    """Return the one style sheet."""
    return files(__package__).joinpath("style.css").read_text(encoding="utf-8")


@cache
def icon() -> str:
    """Return the icon, an SVG."""
    return files(__package__).joinpath("icon.svg").read_text(encoding="utf-8")


@cache
def style_name() -> str:
    """Return a name for the style sheet that changes with it."""
    return hashlib.sha256(style_sheet().encode()).hexdigest()[:12]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("citeledger.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "exact": exact,
        "kind": kind_words,
        "reason": words.reason_words,
        "share": share,
        "status": words.status_words,
        "tier_class": words.tier_class,
        "web_link": web_link,
        "when": when,
    }
    environment.globals |= {
        "DRIFTED": words.DRIFTED,
        "NEVER_HELD": words.NEVER_HELD,
        "UNCHECKABLE": words.UNCHECKABLE,
        "VERIFIED": words.VERIFIED,
        "not_holding_badge": words.not_holding_badge,
        "not_holding_words": words.not_holding_words,
        "plural": words.plural,
        "tier_badge": words.tier_badge,
        "verdict_badge": words.verdict_badge,
        "verdict_class": words.verdict_class,
        "version": __version__,
    }
    return environment


def report_html(chat: ChatView, *, reader_url: str | None = None) -> str:
    """Write the report of a chat: one page that needs no network and runs nothing.

    ``reader_url`` is where a reading room answers; the links that the checks gave then lead there.
    """
    css = style_sheet()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return (
        _environment()
        .get_template("report.html")
        .render(
            chat=chat,
            css=Markup(css),  # noqa: S704 - our own file
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'none'",
            reader_url=None if reader_url is None else reader_url.rstrip("/"),
        )
    )


class Pages:
    """The pages of the reading room."""

    def __init__(self, root: str = "", *, person: str | None = None, home: bool = False) -> None:
        """Take the path that the application is mounted at, and who is signed in with a cookie.

        ``home`` says whether there is a list of chats to go to.
        """
        self._shared: dict[str, Any] = {
            "root": root,
            "person": person,
            "home": home,
            "style": f"{root}/reading-room/style-{style_name()}.css",
        }

    def _render(self, template: str, **values: Any) -> str:
        return _environment().get_template(template).render(**self._shared, **values)

    def chat(self, chat: ChatView) -> str:
        """Write the turns of a chat."""
        return self._render("chat.html", chat=chat)

    def chats(self, chats: tuple[ChatLine, ...]) -> str:
        """Write the list of chats."""
        return self._render("chats.html", chats=chats)

    def page(self, page: PageView) -> str:
        """Write a page of a record."""
        return self._render("page.html", page=page)

    def refusal(self, title: str, detail: str, *, sign_in: str | None = None) -> str:
        """Write a page that says no; ``sign_in`` is where one could sign in."""
        return self._render("refusal.html", title=title, detail=detail, sign_in=sign_in)

    def sign_in(self, people: list[tuple[str, str, str]], then: str) -> str:
        """Write the choice of people: key, name, and what they may see."""
        return self._render("sign_in.html", people=people, then=then)
