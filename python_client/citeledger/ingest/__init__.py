"""Real documents in: pages and blocks out of files, works out of Crossref's answers."""

from .blocks import Page, blocks_of
from .files import UnreadableFileError, read_file

__all__ = ["Page", "UnreadableFileError", "blocks_of", "read_file"]
