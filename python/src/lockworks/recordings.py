# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Read the files of `lockworks record`; docs/reference/recordings.md has the format."""

import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

VERSION = 1
# ns, object, place, away, cpu, kind, flags
STEP = struct.Struct("<QIIIHBB")
NONE = 0xFFFFFFFF
KINDS = (
    "begins",
    "ends",
    "waits",
    "acquires",
    "fails",
    "releases",
    "awaits",
    "woken",
    "expired",
    "signals",
    "broadcasts",
    "returns",
    "yields",
)
MODES = ("mutex", "read", "write")


def columns(path: Path) -> dict[str, list[Any]]:
    """The steps of all threads, as columns of the same length."""
    try:
        with gzip.open(path) as file:
            header = json.loads(file.readline())
            steps = list(STEP.iter_unpack(file.read()))
    except (EOFError, ValueError, struct.error, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is no whole recording: {error}") from error
    if header.get("version") != VERSION:
        raise ValueError(f"{path} has version {header.get('version')}, not {VERSION}")
    threads = [
        (number, thread["function"])
        for number, thread in enumerate(header["threads"])
        for _ in range(thread["steps"])
    ]
    if len(threads) != len(steps):
        raise ValueError(f"{path} is cut off")
    objects, places = header["objects"], header["places"]
    return {
        "thread": [number for number, _ in threads],
        "function": [function for _, function in threads],
        "ns": [step[0] for step in steps],
        "kind": [KINDS[step[5] - 1] for step in steps],
        "object": [None if step[1] == NONE else objects[step[1]] for step in steps],
        "place": [None if step[2] == NONE else places[step[2]] for step in steps],
        "away_ns": [16 * step[3] for step in steps],
        "slept": [bool(step[6] & 4) for step in steps],
        "tried": [bool(step[6] & 8) for step in steps],
        "mode": [MODES[step[6] & 3] for step in steps],
        "cpu": [None if step[4] == 0xFFFF else step[4] for step in steps],
    }
