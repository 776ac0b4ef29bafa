"""Turns every end of a command into an exit code and, where something is wrong, one line."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import typer
from typer.core import TyperGroup

from citeledger.errors import CiteLedgerError, IntegrityError, InvalidArgument, translate

from .exits import CommandError, Exit
from .output import print_error

if TYPE_CHECKING:
    from collections.abc import Sequence


class _InterruptedError(Exception):
    """Ctrl-C, under a name that no library takes for its own."""


class CommandLine(TyperGroup):
    """The group of all commands: no traceback leaves it, and no password."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _InterruptedError from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line, and exit with its code."""
        try:
            result = super().main(
                args, prog_name, complete_var, False, windows_expand_args, **extra
            )
            code = int(result) if isinstance(result, int) else Exit.DONE
            _flush()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else Exit.NO
        except (_InterruptedError, KeyboardInterrupt):
            print_error("interrupted; what was committed stays", label="note")
            code = Exit.INTERRUPTED
        except BrokenPipeError:
            _drop_stdout()
            code = Exit.NO
        except Exception as error:  # the last place before the person
            code = report(error)
        if standalone_mode:
            sys.exit(int(code))
        return int(code)


def report(error: Exception) -> Exit:
    """Print one line about an error, and return what to exit with."""
    if isinstance(error, CommandError):
        print_error(error.message, hint=error.hint)
        return error.code
    if isinstance(error, typer.Abort):
        print_error("interrupted", label="note")
        return Exit.INTERRUPTED
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _usage(error)
    if isinstance(error, psycopg.Error):
        own = translate(error)
        if own is None:
            return _database(error)
        error = own
    if isinstance(error, CiteLedgerError):
        # A constraint's detail may print the values of a row.
        detail = None if isinstance(error, IntegrityError) else error.detail
        print_error(error.message, detail=detail, hint=error.hint)
        # What the client refused by itself was never sent: it is an argument of the command.
        own_refusal = isinstance(error, InvalidArgument) and error.sqlstate is None
        return Exit.USAGE if own_refusal else Exit.REFUSED
    if isinstance(error, OSError):
        print_error(error)
        return Exit.USAGE
    return _bug(error)


def _usage(error: Any) -> Exit:
    """Report what Typer found wrong with the arguments."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "citeledger"
    hint = f"{path} --help"
    if type(error).__name__ == "NoSuchOption" and path.endswith(" cite"):
        hint = f"write -- before a quote that begins with a hyphen; {hint}"
    print_error(error.format_message(), hint=hint)
    return Exit.USAGE


def _database(error: psycopg.Error) -> Exit:
    """Report what is about the connection or the transaction, not about citeledger."""
    lost = isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or (error.sqlstate[:2] in ("08", "57") and error.sqlstate != "57014")
    )
    print_error(
        error.diag.message_primary or str(error) or type(error).__name__,
        hint=error.diag.message_hint,
    )
    return Exit.UNREACHABLE if lost else Exit.REFUSED


def _bug(error: Exception) -> Exit:
    """Report where something happened that should not, but not with what values."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    print_error(
        f"a {type(error).__name__}{place}, which should not happen",
        hint="Please report it, with the command but without its secrets.",
    )
    return Exit.BUG


def _flush() -> None:
    """Write out what is still held back, so that a reader who left is noticed here."""
    sys.stdout.flush()


def _drop_stdout() -> None:
    """Let the interpreter's own flush at its end find a place that takes everything."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
