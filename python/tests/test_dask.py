# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`lockworks sweep --engine dask`, with a scheduler and workers as processes of this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import lockworks
import pytest
from lockworks.command import find

pytest.importorskip("distributed")
Process = subprocess.Popen[str]
# Points of some 10 milliseconds.
PLAN = '[[sweep]]\nlocks = ["qspinlock", "cna"]\nthreads = 36\nseeds = "1..150"\nms = 2\n'
POINTS = 300


class Cluster:
    """A scheduler, workers, and the sweep of a plan that they run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = directory / "plan.results.jsonl"
        self.processes: list[Process] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        (directory / "plan.toml").write_text(PLAN)

    def start(
        self, words: list[str], /, output: int = subprocess.PIPE, **variables: str
    ) -> Process:
        environment = {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LOCKWORKS_PYTHON": sys.executable,
        }
        process = subprocess.Popen(
            words,
            cwd=self.directory,
            env=os.environ | environment | variables,
            stdout=output,
            stderr=output,
            text=True,
        )
        self.processes.append(process)
        return process

    def dask(self, module: str, *options: str) -> Process:
        words = [sys.executable, "-m", f"distributed.cli.{module}", *options]
        return self.start(words, subprocess.DEVNULL)

    def scheduler(self) -> Process:
        return self.dask("dask_scheduler", "--host=127.0.0.1", f"--port={self.port}", "--no-show")

    def worker(self, command: Path | None = None) -> Process:
        """A worker, which runs this command instead of its own one."""
        options = ["--nthreads=1", "--no-nanny", "--no-dashboard"]
        if command:
            preload = self.directory / "preload.py"
            replaced = f"import lockworks.dask_engine as e\ne.find = lambda: {str(command)!r}\n"
            preload.write_text(replaced)
            options += ["--preload", str(preload)]
        return self.dask("dask_worker", self.address, *options)

    def sweep(self, *more: str, **variables: str) -> Process:
        words = [find(), "sweep", "plan.toml", "--engine", "dask", *more]
        return self.start(words, subprocess.PIPE, **variables)

    def results(self) -> list[str]:
        return self.store.read_text().splitlines() if self.store.exists() else []

    def wait_for_results(self, sweep: Process) -> None:
        """Wait until some results have arrived, but not all."""
        end = time.monotonic() + 60
        while len(self.results()) < 10:
            assert sweep.poll() is None and time.monotonic() < end, sweep.communicate()
            time.sleep(0.01)
        assert len(self.results()) < POINTS

    def check_results(self) -> None:
        """Each point has one result."""
        keys = [json.loads(line)["key"] for line in self.results()]
        assert len(keys) == len(set(keys)) == POINTS


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    for process in cluster.processes:
        process.kill()
        process.wait()


def ended(process: Process) -> tuple[int, str, str]:
    printed, messages = process.communicate(timeout=180)
    return process.returncode, printed, messages


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


def test_a_cluster_of_this_machine_has_the_results_of_the_default_engine(cluster: Cluster) -> None:
    status, printed, messages = ended(cluster.sweep("--output", "dask.csv"))
    assert (status, printed) == (0, "")
    assert messages.startswith("lockworks: dashboard: http://127.0.0.1:")
    cluster.check_results()
    here = [find(), "sweep", "plan.toml", "--store", "here.jsonl", "--output", "here.csv"]
    assert ended(cluster.start(here))[0] == 0
    directory = cluster.directory
    assert (directory / "dask.csv").read_text() == (directory / "here.csv").read_text()


def test_a_worker_that_is_killed_loses_nothing(cluster: Cluster) -> None:
    cluster.scheduler()
    victim, _ = cluster.worker(), cluster.worker()
    sweep = cluster.sweep("--scheduler", cluster.address)
    cluster.wait_for_results(sweep)
    victim.kill()
    assert ended(sweep)[0] == 0
    cluster.check_results()


def test_a_scheduler_that_restarts_loses_nothing(cluster: Cluster) -> None:
    scheduler = cluster.scheduler()
    cluster.worker(), cluster.worker()
    sweep = cluster.sweep("--scheduler", cluster.address)
    cluster.wait_for_results(sweep)
    scheduler.kill()
    scheduler.wait()
    cluster.scheduler()
    cluster.worker()
    status, _, messages = ended(sweep)
    assert status == 0, messages
    assert f"the scheduler at {cluster.address} is gone; waiting for it" in messages
    cluster.check_results()


def test_a_point_that_crashes_the_command_fails_alone(cluster: Cluster) -> None:
    crash = script(
        cluster.directory / "crash",
        f'[ "$1" = sweep ] || exec {find()} "$@"\n'
        f"input=$(mktemp)\ncat > $input\n"
        f'sed \'/"seed":77,/,$d\' $input | {find()} "$@"\n'
        "! grep -q '\"seed\":77,' $input || kill -9 $$\n",
    )
    cluster.scheduler()
    cluster.worker(crash)
    status, _, messages = ended(cluster.sweep("--scheduler", cluster.address))
    assert status == 1
    assert "2 of 300 points failed:\n  the command ended by signal 9\n" in messages
    cluster.check_results()
    # The default engine runs these again.
    retried = cluster.start([find(), "sweep", "plan.toml", "--retry", "--json"])
    assert json.loads(ended(retried)[1])["failed"] == 0


def test_an_interrupted_sweep_goes_on_where_it_was(cluster: Cluster) -> None:
    sweep = cluster.sweep()
    cluster.wait_for_results(sweep)
    sweep.send_signal(signal.SIGINT)
    status, _, messages = ended(sweep)
    assert status == 130
    assert messages.endswith("interrupted; results are kept, and the same command goes on\n")
    assert 10 <= len(cluster.results()) < POINTS
    assert ended(cluster.sweep())[0] == 0
    cluster.check_results()


def refused(sweep: Process) -> str:
    """The line that refuses the sweep."""
    status, printed, messages = ended(sweep)
    assert (status, printed, messages.count("\n")) == (2, "", 1), messages
    return messages


def test_what_cannot_run_is_refused_in_one_line(cluster: Cluster) -> None:
    line = refused(cluster.sweep("--scheduler", cluster.address))
    assert f"no Dask scheduler answers at {cluster.address}; start one with" in line
    line = refused(cluster.sweep("--scheduler", "nonsense:"))
    assert "no Dask scheduler answers at nonsense:" in line
    bare = script(cluster.directory / "bare", f'exec {sys.executable} -I -S "$@"\n')
    line = refused(cluster.sweep(LOCKWORKS_PYTHON=str(bare)))
    assert "bare has no engine dask; type: pip install 'lockworks[dask]'" in line
    line = refused(cluster.start([find(), "sweep", "plan.toml", "--engine", "desk"]))
    assert "invalid value 'desk' for '--engine <ENGINE>'; [possible values: local, dask]" in line


def test_a_worker_of_another_version_runs_nothing(cluster: Cluster) -> None:
    cluster.scheduler()
    cluster.worker(script(cluster.directory / "other", "echo lockworks 0.0.9+1234\n"))
    status, _, messages = ended(cluster.sweep("--scheduler", cluster.address))
    assert status == 2
    assert "has lockworks 0.0.9+1234, but this is lockworks 0.1.0+" in messages.splitlines()[-1]
    assert cluster.results() == []


def test_a_sweep_in_python_runs_there_too(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("LOCKWORKS_PYTHON", sys.executable)
    plan = cluster.directory / "plan.toml"
    with pytest.raises(lockworks.Error, match="no Dask scheduler answers at nonsense:") as caught:
        lockworks.sweep(plan, engine="dask", scheduler="nonsense:")
    assert caught.value.status == 2
    assert len(lockworks.sweep(plan, engine="dask")) == POINTS
    cluster.check_results()


def test_checks_take_memory_of_their_worker(cluster: Cluster) -> None:
    # No worker has as much memory as the second check may use. The third one sets no limit.
    plan = ""
    for options in ('"tas"\nmemory_limit = 1000', '"ticket"\nmemory_limit = 100000000', '"mcs"'):
        plan += f'[[sweep]]\nkind = "check"\nlocks = {options}\n'
    (cluster.directory / "plan.toml").write_text(plan)
    assert ended(cluster.sweep("--json"))[0] == 0
    assert len(cluster.results()) == 3
