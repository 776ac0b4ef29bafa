"""What the process exits with, and the one exception that says so."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes, as ``--help`` and the documentation list them."""

    DONE = 0
    NO = 1
    """The answer is no: something was found, does not hold, or was skipped."""
    USAGE = 2
    """The command was not given as it must be, or an extra is missing."""
    UNREACHABLE = 3
    """There is no connection to the database."""
    REFUSED = 4
    """The database refused: permission, not found, bad argument, wrong version."""
    BUG = 70
    """Something that should not happen."""
    INTERRUPTED = 130
    """Ctrl-C; what was committed stays, whole batches only."""


class CommandError(Exception):
    """An end of the command that a person is told of in one line."""

    def __init__(self, message: str, *, code: Exit = Exit.USAGE, hint: str | None = None) -> None:
        """Say what is wrong, and perhaps what to do."""
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
