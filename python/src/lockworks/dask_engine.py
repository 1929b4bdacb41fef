# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The engine of `lockworks sweep --engine dask`: runs the points of a plan on a Dask cluster.

The command names the points that its store lacks. This module has workers run them in batches, by
the command too, and lets the command add each result to the store when it arrives. So an
interruption loses no result that has arrived, and only the command knows what a point means.
"""

import argparse
import json
import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client, Future, LocalCluster, as_completed, get_worker

from .command import Error, find

# The work of a batch, in seconds: much more than the costs of a task and a process.
BATCH_SECONDS = 1.0
# How long to wait for a scheduler, in seconds: at the start, and for one that restarts.
CONNECT_SECONDS, RECONNECT_SECONDS = 10, 120
# The resource of workers that checks take, in MiB.
MEMORY = "memory"

# The processes of the batches that run in this process.
children: set[subprocess.Popen[str]] = set()


def version(command: str) -> str:
    """The version of the command."""
    ended = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def memory_of(dask_worker: Any) -> tuple[float, float]:
    """On a worker: its memory, and that for each of its threads, in MiB. 0: it declares none."""
    memory = dask_worker.state.total_resources.get(MEMORY, 0)
    return memory, memory / dask_worker.state.nthreads


def run_batch(
    command: str | None, expected: str, points: list[str], memory: int | None
) -> list[str]:
    """On a worker: run points, one after the other. Return the result of each, in this order.

    command: its path; None: that of the worker.
    expected: the version that it must have.
    points, and what is returned: lines as the command prints them.
    memory: the limit of a check that sets none, in MiB.
    """
    command = command or find()
    if (found := version(command)) != expected:
        message = f"the worker {get_worker().address} has {found}, but this is {expected}"
        raise Error(f"{message}; install the same one there", 2)
    words = [command, "sweep", "--points", "-", "--jobs", "1"]
    if memory is not None:
        words += ["--memory-limit", str(memory)]
    results: list[str] = []
    while len(results) < len(points):
        begin = time.monotonic()
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
            children.add(child)
            printed, messages = child.communicate("".join(points[len(results) :]))
            children.discard(child)
        results += lines_of(printed)
        if len(results) == len(points):
            break
        status = child.returncode
        if status >= 0 or status in (-signal.SIGINT, -signal.SIGTERM):
            message = messages.strip().removeprefix("lockworks: ")
            raise Error(message or f"{command} ended with status {status}", 2)
        # It has crashed, or was killed for its memory. That fails the point that it ran.
        result = {
            **json.loads(points[len(results)]),
            "result": None,
            "error": f"the command ended by signal {-status}",
            "seconds": time.monotonic() - begin,
        }
        results.append(json.dumps(result, separators=(",", ":")) + "\n")
    return results


def lines_of(text: str) -> list[str]:
    """The lines of a text, without one that was cut short."""
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def end_children() -> None:
    """End the processes of the batches that run in this process."""
    for child in list(children):
        child.terminate()


@dataclass
class Point:
    """A point that is to be run."""

    line: str
    is_check: bool
    limit: int | None  # The memory that a check may use, in MiB, if it says so.

    @staticmethod
    def read(line: str) -> "Point":
        """The point of a line of `lockworks sweep --pending`."""
        point = json.loads(line)
        return Point(line, point["kind"] == "check", point["options"].get("memory-limit"))


class SchedulerLostError(Exception):
    """The scheduler is gone. Points whose results have not arrived wait again."""


class Sweep:
    """The points that wait, and the process of the command that adds results to the store."""

    def __init__(self, command: str, on_workers: str | None, words: list[str], retry: bool) -> None:
        """command: that of this machine. on_workers: that of workers, if it is at this path."""
        pending = [command, *words, "--pending", *(["--retry"] if retry else [])]
        printed = subprocess.run(pending, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.on_workers = on_workers
        self.version = version(command)
        self.waiting = deque(map(Point.read, lines_of(printed)))
        self.points = len(self.waiting)
        self.arrived = 0
        self.seconds_a_point = BATCH_SECONDS
        # An interruption of this process must not end it: it adds what has arrived.
        self.importer = subprocess.Popen(
            [command, *words, "--import", "-"],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def memory(self, client: Client) -> tuple[float, float]:
        """The most memory that a worker declares, and the least for each thread, in MiB; or 0."""
        answers = client.run(memory_of, on_error="return")
        if not answers:
            say("the cluster has no worker yet; waiting for one")
        # A worker that fails says why when it gets a batch.
        declared = [a for a in answers.values() if isinstance(a, tuple) and a[0] > 0]
        if not declared:
            return 0, 0
        return max(memory for memory, _ in declared), min(share for _, share in declared)

    def take(self, threads: int) -> list[Point]:
        """Take the points of the next batch: alike in memory, and fewer towards the end."""
        number = min(BATCH_SECONDS / self.seconds_a_point, len(self.waiting) / (2 * threads))
        batch = [self.waiting.popleft()]
        while self.waiting and len(batch) < number:
            first, following = batch[0], self.waiting[0]
            if (first.is_check, first.limit) != (following.is_check, following.limit):
                break
            batch.append(self.waiting.popleft())
        return batch

    def add(self, results: list[str]) -> None:
        """Add results to the store."""
        assert self.importer.stdin
        try:
            self.importer.stdin.write("".join(results))
            self.importer.stdin.flush()
        except BrokenPipeError:
            # The command has said why.
            sys.exit(self.importer.wait())
        seconds = sum(json.loads(line)["seconds"] for line in results)
        self.seconds_a_point = max(seconds / len(results), 1e-4)
        self.arrived += len(results)
        if sys.stderr.isatty():
            print(f"\r{self.arrived} of {self.points} points", end="", file=sys.stderr, flush=True)

    def finish(self) -> int:
        """Wait until all results are in the store. Return the exit status of the command."""
        assert self.importer.stdin
        with suppress(BrokenPipeError):
            self.importer.stdin.close()
        if self.arrived and sys.stderr.isatty():
            print(file=sys.stderr)
        return self.importer.wait()

    def run(self, client: Client) -> None:
        """Run the points that wait.

        Raises SchedulerLostError, and Error if the points cannot be run.
        """
        running: dict[Future, list[Point]] = {}
        try:
            memory = self.memory(client)
            finished = as_completed(raise_errors=False)
            self.submit(client, memory, running, finished)
            for future in finished:
                if future.status == "error":
                    raise self.error_of(future)
                if future.status != "finished":
                    raise SchedulerLostError
                self.add(future.result())
                del running[future]
                self.submit(client, memory, running, finished)
        except (OSError, SchedulerLostError):
            for batch in running.values():
                self.waiting.extendleft(reversed(batch))
            raise SchedulerLostError from None

    def submit(
        self,
        client: Client,
        memory: tuple[float, float],
        running: dict[Future, list[Point]],
        finished: as_completed,
    ) -> None:
        """Submit batches: two for each thread, so that none waits for its next one."""
        most, share = memory
        threads = max(1, sum(client.nthreads().values()))
        while self.waiting and len(running) < 2 * threads:
            batch = self.take(threads)
            limit, takes = None, {}
            if batch[0].is_check:
                limit = batch[0].limit or int(share) or None
                # One that may use more than any worker has takes a whole worker.
                takes = {MEMORY: min(limit or 0, most)} if most else {}
            future = client.submit(
                run_batch,
                self.on_workers,
                self.version,
                [point.line for point in batch],
                limit,
                pure=False,
                resources=takes,
            )
            running[future] = batch
            finished.add(future)

    @staticmethod
    def error_of(future: Future) -> Error:
        """The error of a batch that could not be run."""
        error = future.exception()
        if isinstance(error, Error):
            return error
        return Error(f"workers fail: {error}".splitlines()[0], 2)


def say(message: str) -> None:
    print(f"lockworks: {message}", file=sys.stderr, flush=True)


def connect(address: str, seconds: int) -> Client:
    """A client of the scheduler at this address, which must answer within this time."""
    try:
        return Client(address, timeout=seconds)
    except (OSError, ValueError):
        message = f"no Dask scheduler answers at {address}; start one with `dask scheduler`"
        raise Error(f"{message}, or leave --scheduler out", 2) from None


def run_here(sweep: Sweep, jobs: int) -> None:
    """Run the sweep on a cluster of this machine.

    Its one worker is in this process, since its threads only wait for processes of the command.
    """
    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=jobs,
        processes=False,
        memory_limit=0,
        resources={MEMORY: available_mib() // 2},
        dashboard_address="127.0.0.1:8787",
    )
    with cluster, Client(cluster) as client:
        port = cluster.scheduler.http_server.port
        say(f"dashboard: http://127.0.0.1:{port}/status")
        try:
            sweep.run(client)
        finally:
            end_children()


def run_there(sweep: Sweep, address: str) -> None:
    """Run the sweep on the cluster of the scheduler at this address, also if that restarts."""
    wait = CONNECT_SECONDS
    while True:
        with connect(address, wait) as client:
            say(f"dashboard: {client.dashboard_link}")
            try:
                return sweep.run(client)
            except SchedulerLostError:
                say(f"the scheduler at {address} is gone; waiting for it")
                wait = RECONNECT_SECONDS


def available_mib() -> int:
    """The memory of this machine that is available, in MiB."""
    with Path("/proc/meminfo").open() as file:
        kib = next(line.split()[1] for line in file if line.startswith("MemAvailable:"))
    return int(kib) // 1024


def main() -> int:
    """Run the points of a sweep, then become `lockworks sweep`, which reports on them."""
    parser = argparse.ArgumentParser(prog="lockworks.dask_engine")
    for name in ("command", "plan", "store"):
        parser.add_argument(name)
    for option in ("--scheduler", "--part", "--output"):
        parser.add_argument(option)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    for option in ("--retry", "--json"):
        parser.add_argument(option, action="store_true")
    args = parser.parse_args()
    # An error takes one line.
    logging.disable()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    words = ["sweep", args.plan, "--store", args.store]
    if args.part:
        words += ["--part", args.part]
    sweep = Sweep(args.command, None if args.scheduler else args.command, words, args.retry)
    try:
        if args.scheduler:
            run_there(sweep, args.scheduler)
        else:
            run_here(sweep, args.jobs)
    except Error as error:
        sweep.finish()
        say(str(error))
        return error.status
    except KeyboardInterrupt:
        end_children()
        sweep.finish()
        say("interrupted; results are kept, and the same command goes on")
        return 130
    if status := sweep.finish():
        return status
    words += ["--output", args.output] if args.output else []
    words += ["--json"] if args.json else []
    os.execv(args.command, [args.command, *words])


if __name__ == "__main__":
    # Workers import the functions from the package, not from the main program.
    from lockworks import dask_engine

    sys.exit(dask_engine.main())
