#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check which directory includes from which: the rules of ARCHITECTURE.md.

A file may include from its own directory and from those listed for it here. A name that no file of
ours has is the system's, Linux' or generated, and is allowed.
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
    "worlds/user": LOCKS,
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


def violations() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.[ch]", "*.hpp"],
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [path for line in listed.stdout.splitlines() if (path := Path(line)).is_file()]
    homes: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        homes[path.name].add(str(path.parent))
    found = []
    for path in paths:
        here = str(path.parent)
        if here not in ALLOWED:
            continue
        for number, line in enumerate(path.read_text().split("\n"), start=1):
            match = re.match(r'\s*#\s*include\s+["<](?:lockworks/)?([\w./-]+)[">]', line)
            name = match.group(1) if match else ""
            where = homes.get(name, set())
            if where and name not in OF_EACH_WORLD and not where & {here, *ALLOWED[here]}:
                allowed = ", ".join((here, *ALLOWED[here]))
                found.append(
                    f"{path}:{number}: {name} is in {', '.join(sorted(where))}; "
                    f"a file in {here} may include from {allowed}"
                )
    return found


if __name__ == "__main__":
    lines = violations()
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(1 if lines else 0)
