# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""How far replays are off: programs recorded with 2 threads, replayed and run with more.

Each program runs under glibc's locks and with two of Lockworks, by turns, and the ratios to
glibc's are compared with those of the replay, and with the answer that all locks are alike.
Run it from the project's root, with nothing else running, after `make` and `make setup-programs`:

    python3 tests/programs/replay_accuracy.py
"""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROUNDS = 5
SECONDS = "0.25"
THREADS = (2, 4, 8, 16)
LOCKS = ("mutex", "pv")
KNOWN_WORK = (
    "50 0 S constant 1",
    "200 1000 S constant 1",
    "200 1000 S exponential 2",
    "500 20000 S constant 1",
    "1000 5000 S exponential 1",
    "2000 500 S constant 8",
    "5000 5000 S constant 1",
    "20000 20000 S humps 1",
)
LIBRARY = Path("build/liblockworks-preload.so").absolute()


def programs(directory: Path) -> dict[str, str]:
    """The commands, with T for the number of threads; H is half of it, and O is one less."""
    for name in ("known_work", "queue"):
        source = f"tests/programs/{name}.c"
        flags = ["-O2", "-pthread", "-Wl,--build-id", source, "-lm", "-o", str(directory / name)]
        subprocess.run(["cc", *flags], check=True)
    known = {f"known_work {work}": f"{directory}/known_work T {work}" for work in KNOWN_WORK}
    return known | {
        "queue, halves": f"{directory}/queue H H 3000 3000 S",
        "queue, one producer": f"{directory}/queue 1 O 3000 10000 S",
        "leveldb": "build/programs/readrandom T S",
    }


def command(words: str, threads: int) -> list[str]:
    """The command for this number of threads."""
    values = {"T": threads, "H": threads // 2, "O": threads - 1, "S": SECONDS}
    return [str(values.get(word, word)) for word in words.split()]


def rate(words: list[str], lock: str | None) -> float:
    """What the program prints first, under a lock of Lockworks if there is one."""
    ours = {"LD_PRELOAD": str(LIBRARY), "LOCKWORKS_LOCK": lock} if lock else {}
    ran = subprocess.run(words, env=os.environ | ours, capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[0])


def measured(words: str, threads: int) -> dict[str, tuple[float, float, float]]:
    """For each lock, the least, the median and the greatest ratio to glibc's."""
    rounds = []
    for _ in range(ROUNDS):
        base, *rates = (rate(command(words, threads), lock) for lock in (None, *LOCKS))
        rounds.append([one / base for one in rates])
    return {
        lock: (min(of), statistics.median(of), max(of))
        for lock, of in zip(LOCKS, zip(*rounds, strict=True), strict=True)
    }


def predicted(
    words: str, directory: Path, one_producer: bool
) -> tuple[float, dict[tuple[str, int], float]]:
    """How far the check is off, and ratios to glibc's, by lock and number of threads."""
    file = str(directory / "recording.lw")
    record = ["target/release/lockworks", "record", "-o", file, "--", *command(words, 2)]
    subprocess.run(record, check=True, capture_output=True)
    numbers = ",".join(map(str, THREADS))
    replay = ["target/release/lockworks", "replay", file, "--anyway", "--json"]
    replay += ["--threads", numbers, "--lock", ",".join(("glibc", *LOCKS))]
    replay += ["--class", "produce=1"] if one_producer else []
    results = json.loads(subprocess.run(replay, check=True, capture_output=True).stdout)
    rates = {(row["lock"], row["threads"]): row["operations_per_second"] for row in results["rows"]}
    ratios = {
        (lock, threads): rates[lock, threads] / rates["futex", threads]
        for lock in LOCKS
        for threads in THREADS
    }
    return results["recording"]["off"], ratios


def summary(name: str, errors: list[float]) -> str:
    """The mean and the median of errors, and how many are within a quarter."""
    within = sum(error <= 0.25 for error in errors)
    mean, median = statistics.mean(errors), statistics.median(errors)
    return f"{name}: mean {mean:.0%}, median {median:.0%}, {within} of {len(errors)} within 25 %"


def main() -> None:
    """Prints a row for each program and number of threads, and the errors."""
    errors: list[float] = []
    alike: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for program, words in programs(directory).items():
            off, ratios = predicted(words, directory, program.endswith("one producer"))
            for threads in THREADS:
                for lock, (low, ratio, high) in measured(words, threads).items():
                    answer = ratios[lock, threads]
                    print(
                        f"{program:36} check {off:+4.0%} {threads:2} threads {lock:5}"
                        f" measured {ratio:.2f} ({low:.2f} to {high:.2f}) predicted {answer:.2f}",
                        flush=True,
                    )
                    if abs(off) <= 0.2:
                        errors.append(abs(answer / ratio - 1))
                        alike.append(abs(1 / ratio - 1))
    print("Of programs whose check is within 20 %:")
    print(summary("replay", errors))
    print(summary("all alike", alike))


if __name__ == "__main__":
    main()
