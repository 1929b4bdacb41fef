#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""footprint.py LIBRARY: programs of this machine with and without LIBRARY loaded into them.

Prints a row for each program. The first figure is without the library; the second says how much
more it is with it. The last column is the least time of runs that only print the version. Programs
that are missing are left out.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTLE_SECONDS = 2.0
STARTS = 21

# A command that waits until it is ended, and one that ends at once.
PYTHON = """
import threading, time
for _ in range(64):
    threading.Thread(target=time.sleep, args=(60,)).start()
"""
JAVA = """
class Wait {
    public static void main(String[] arguments) throws Exception { Thread.sleep(60000); }
}
"""
COLUMNS = ("address space, MiB", "resident, MiB", "mappings", "descriptors", "threads", "start, ms")
DIGITS = (1, 1, 0, 0, 0, 1)
PROGRAMS: dict[str, tuple[list[str], list[str]]] = {
    "bash": (["-c", "read"], ["--version"]),
    "gdb": (["--quiet"], ["--version"]),
    "java": (["Wait.java"], ["-version"]),
    "memcached": (["-u", "root", "-s", "socket", "-t", "16"], ["--version"]),
    "node": (["-e", "setTimeout(() => {}, 60000)"], ["--version"]),
    "openssl": (["dgst"], ["version"]),
    "perl": (["-e", "sleep 60"], ["-v"]),
    "python3": (["-c", PYTHON], ["--version"]),
    "qemu-system-x86_64": (["-S", "-display", "none", "-accel", "tcg"], ["--version"]),
    "redis-server": (["--port", "0", "--unixsocket", "socket", "--save", ""], ["--version"]),
    "sqlite3": (["-interactive"], ["--version"]),
    "xz": (["-T", "2"], ["--version"]),
}


def status(pid: int, key: str) -> int:
    """Returns a number of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def footprint(command: list[str], environment: dict[str, str], directory: str) -> list[float]:
    """Runs a command that waits. Returns what it has."""
    with subprocess.Popen(
        command,
        env=environment,
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(SETTLE_SECONDS)
        try:
            directory_of = Path(f"/proc/{process.pid}")
            return [
                status(process.pid, "VmSize") / 1024,
                status(process.pid, "VmRSS") / 1024,
                len((directory_of / "maps").read_text().splitlines()),
                len(list((directory_of / "fd").iterdir())),
                status(process.pid, "Threads"),
            ]
        finally:
            process.kill()


def start_ms(command: list[str], environment: dict[str, str]) -> float:
    """Runs a command that ends at once. Returns how long that takes."""
    begin = time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=False)
    return (time.perf_counter() - begin) * 1000


def main() -> int:
    """Prints the table."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print("usage: footprint.py LIBRARY, such as build/liblockworks-preload.so", file=sys.stderr)
        return 2
    without = dict(os.environ)
    loaded = {**without, "LD_PRELOAD": str(Path(sys.argv[1]).resolve())}
    print(f"| program | {' | '.join(COLUMNS)} |")
    print(f"| -- {'| -- ' * len(COLUMNS)}|")
    for name, (wait, end) in PROGRAMS.items():
        path = shutil.which(name, path="/usr/sbin:/usr/bin")
        if not path:
            continue
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "Wait.java").write_text(JAVA)
            alone, more = [footprint([path, *wait], e, directory) for e in (without, loaded)]
        # In turn, so that other work of the machine slows both.
        starts = [[start_ms([path, *end], e) for e in (without, loaded)] for _ in range(STARTS)]
        alone.append(min(times[0] for times in starts))
        more.append(min(times[1] for times in starts))
        cells = [
            f"{a:.{digits}f} {b - a:+.{digits}f}"
            for a, b, digits in zip(alone, more, DIGITS, strict=True)
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
