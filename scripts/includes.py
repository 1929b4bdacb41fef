#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check which directory includes from which: the rules of ARCHITECTURE.md.

A file may include from its own directory, and the directories and files listed for it here. A name
or path that no file of ours has is the system's, Linux' or generated, and is allowed.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

LOCKS = ("locks", "locks/contract", "locks/parts", "locks/registry")
# The headers of the world that is compiled, which the contract includes by name.
OF_EACH_WORLD = ("world.h", "world_surroundings.h")
ALLOWED = {
    **dict.fromkeys(LOCKS, LOCKS),
    # Public types that this world works with.
    "worlds/user": (
        *LOCKS,
        "lib/include/lockworks/nearness.h",
        "lib/include/lockworks/wait_limit.h",
    ),
    "worlds/kernel": (*LOCKS, "clients"),
    "worlds/sim": (*LOCKS, "clients"),
    "worlds/check": (*LOCKS, "clients"),
    "clients": LOCKS,
    "lib": (*LOCKS, "worlds/user", "lib/include/lockworks"),
    "lib/include/lockworks": (*LOCKS, "worlds/user"),
    "interpose/common": LOCKS,
    "interpose/preload": (
        *LOCKS,
        "worlds/user",
        "lib",
        "lib/include/lockworks",
        "interpose/common",
    ),
    "interpose/profile": (*LOCKS, "lib/include/lockworks", "interpose/common"),
}


# Every directory below these is in ALLOWED.
RULED = ("locks", "worlds", "clients", "lib", "interpose")
SUFFIXES = ("h", "hpp", "c", "cc", "cpp")
INCLUDE = re.compile(r'\s*#\s*include\s+["<]([\w./-]+)[">]')


class Files:
    """The C and C++ files of a repository, relative to its root."""

    def __init__(self, root: Path) -> None:
        patterns = [f"*.{suffix}" for suffix in SUFFIXES]
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
            check=True,
            capture_output=True,
            text=True,
            cwd=root,
        )
        known = [Path(line) for line in listed.stdout.splitlines()]
        self.paths = [path for path in known if (root / path).is_file()]
        self.named: dict[str, list[Path]] = defaultdict(list)
        for path in self.paths:
            self.named[path.name].append(path)

    def homes(self, name: str) -> set[str]:
        """The directories of the files that a name in an #include may mean."""
        parts = Path(name).parts
        if ".." in parts:
            parts = parts[-1:]
        elif parts[0] == "lockworks" and len(parts) > 1:
            # `make install` puts all public headers into this directory.
            parts = parts[1:]
        return {
            str(path.parent)
            for path in self.named.get(parts[-1], [])
            if path.parts[-len(parts) :] == parts
        }


def problem(here: str, name: str, where: set[str]) -> str | None:
    """What is wrong with an #include in the directory `here` of a name that is in `where`."""
    allowed = (here, *ALLOWED[here])
    if not where or name in OF_EACH_WORLD:
        return None
    if ".." in Path(name).parts:
        return f"{name}: name a file of ours without '..'"
    files = {f"{directory}/{Path(name).name}" for directory in where}
    if (where | files) & set(allowed):
        return None
    return (
        f"{name} is in {', '.join(sorted(where))}; "
        f"a file in {here} may include from {', '.join(allowed)}"
    )


def violations(root: Path) -> list[str]:
    files = Files(root)
    found = []
    for path in files.paths:
        here = str(path.parent)
        if here not in ALLOWED:
            if path.parts[0] in RULED:
                found.append(f"{path}: add {here} to ALLOWED in scripts/includes.py")
            continue
        for number, line in enumerate((root / path).read_text().split("\n"), start=1):
            if match := INCLUDE.match(line):
                name = match.group(1)
                if wrong := problem(here, name, files.homes(name)):
                    found.append(f"{path}:{number}: {wrong}")
    return found


if __name__ == "__main__":
    lines = violations(Path(__file__).parents[1])
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(1 if lines else 0)
