"""Say which statements and branches of the package's functions the tests execute.

It runs the pgTAP files and the tests that work inside the database on Debian's PostgreSQL under the
profiler of plpgsql_check, adds up what it counted in every database of the run, prints each
function's share, and exits 1 when a statement or a branch was never executed that is not listed
here with the reason, or when a listed one was.

A branch is a way that control flow can take: the body of each THEN, ELSIF, ELSE, WHEN, loop and
exception handler, and for an IF without ELSE also the way past it.

``python tools/coverage.py [PYTEST ARGUMENT ...]``: other arguments replace the tests to run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Those that reach every statement, and no more: all of them run in the tests.
TESTS = [
    "tests/test_pgtap.py",
    "tests/cite",
    "tests/concurrency/test_other_isolation_levels.py",
    "tests/concurrency/test_parents_that_go.py",
    "tests/faults",
    "tests/graph/test_isolation_levels.py",
    "tests/static",
]

# What takes a minute to call again and again what the others call.
LONG = ("tests/cite/test_oracle.py",)

# (function, line of its body, what is missing) -> why no test can execute it.
NOT_COVERED: dict[tuple[str, int, str], str] = {}


@dataclass(slots=True)
class Statement:
    """A statement of a function, and how often it was executed in all databases together."""

    number: int
    parent: int | None
    note: str
    line: int
    name: str
    count: int = 0


@dataclass(slots=True)
class Function:
    """A function's statements by their number, and the way through them."""

    name: str
    statements: dict[int, Statement] = field(default_factory=dict)

    def bodies(self, parent: int) -> dict[str, list[Statement]]:
        """Return what hangs on a statement, by the branch that it belongs to."""
        found = defaultdict(list)
        for statement in self.statements.values():
            if statement.parent == parent:
                found[statement.note].append(statement)
        return found

    def branches(self) -> Iterator[tuple[int, str, bool]]:
        """Yield (line, branch, whether it was taken) for every branch."""
        for statement in self.statements.values():
            bodies = self.bodies(statement.number)
            for note, body in bodies.items():
                if note != "body":
                    yield body[0].line, note, body[0].count > 0
            if statement.name == "IF" and "else body" not in bodies:
                taken = sum(body[0].count for body in bodies.values())
                yield statement.line, "past the IF", statement.count > taken

    def missing(self) -> Iterator[tuple[int, str]]:
        """Yield (line, what) for what was never executed."""
        for statement in self.statements.values():
            if not statement.count:
                yield statement.line, statement.name
        for line, branch, taken in self.branches():
            if branch == "past the IF" and not taken:
                yield line, branch


def add_up(lines: Iterable[str]) -> list[Function]:
    """Add up the counts of every database, by the body of the functions.

    Tests rename functions and replace bodies: the name that a body has most often is its own, and
    the body that a name has most often.
    """
    counts: dict[tuple[str, int], int] = Counter()
    form: dict[str, dict[int, Statement]] = defaultdict(dict)
    names: Counter[tuple[str, str]] = Counter()
    for line in lines:
        for name, body, number, parent, note, at, statement, count in json.loads(line):
            if number == 0:
                names[name, body] += 1
            counts[body, number] += count or 0
            form[body][number] = Statement(number, parent, note or "", at, statement)
    functions: list[Function] = []
    seen: set[str] = set()
    for (name, body), _ in names.most_common():
        if not seen & {name, body}:
            for number, statement in form[body].items():
                statement.count = counts[body, number]
            functions.append(Function(name, form[body]))
        seen |= {name, body}
    return sorted(functions, key=lambda f: f.name)


def share(taken: int, of: int) -> str:
    """Write a share as a percentage."""
    return f"{100 * taken / of if of else 100:5.1f} %"


def report(functions: list[Function]) -> int:
    """Print each function's coverage and return the exit status."""
    wrong = []
    used: set[tuple[str, int, str]] = set()
    all_statements = all_executed = all_branches = all_taken = 0
    for function in functions:
        name = function.name
        executed = sum(1 for s in function.statements.values() if s.count)
        branches = list(function.branches())
        taken = sum(1 for *_, was in branches if was)
        all_statements += len(function.statements)
        all_executed += executed
        all_branches += len(branches)
        all_taken += taken
        print(
            f"{share(executed, len(function.statements))} of {len(function.statements):3}"
            f" statements {share(taken, len(branches))} of {len(branches):3} branches  {name}"
        )
        for line, what in function.missing():
            key = (name, line, what)
            if key in NOT_COVERED:
                used.add(key)
            else:
                wrong.append(f"never executed: {name}, line {line} of the body: {what}")
    wrong += [f"NOT_COVERED: {key} is covered or gone" for key in NOT_COVERED if key not in used]
    if not functions:
        wrong.append("no function was profiled")
    print(*wrong, sep="\n")
    print(
        f"coverage: {len(functions)} functions,"
        f" {share(all_executed, all_statements).strip()} of {all_statements} statements,"
        f" {share(all_taken, all_branches).strip()} of {all_branches} branches,"
        f" {len(wrong)} not accounted for"
    )
    return int(bool(wrong))


def main(arguments: list[str]) -> int:
    """Run the tests under the profiler and report."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        profile.touch()
        environment = os.environ | {
            "CITELEDGER_SERVER": "debian",
            "CITELEDGER_PROFILE": str(profile),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / "python_client")]),
        }
        done = subprocess.run(
            [
                sys.executable,
                *("-m", "pytest", "-q", "-p", "static.profile_plugin"),
                *("-p", "no:cacheprovider"),
                *(arguments or [*TESTS, *(f"--ignore={path}" for path in LONG)]),
            ],
            check=False,
            cwd=ROOT,
            env=environment,
        )
        with profile.open(encoding="utf-8") as lines:
            status = report(add_up(lines))
    return done.returncode or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
