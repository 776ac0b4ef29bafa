"""What a person reads: the report and the reading room, from one view model.

Needs Jinja2, which the extras ``citeledger[cli]`` and ``citeledger[http]`` bring.
"""

from .reading import Reading, reading
from .render import Pages, report_html
from .views import ChatView, PageView

__all__ = ["ChatView", "PageView", "Pages", "Reading", "reading", "report_html"]
