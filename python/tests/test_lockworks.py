# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Data frames of what the command prints."""

import gzip
import json
import os
import re
import runpy
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lockworks
import pandas
import polars
import pytest

ROOT = Path(__file__).parents[2]
PLAN = """
[[sweep]]
machines = "kunpeng-920"
locks = ["qspinlock", "cna"]
threads = [1, 4]
seeds = "1..2"
ms = 0.2

[[sweep]]
kind = "check"
locks = ["ticket", "busted"]
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_simulation_is_a_row_for_each_lock_and_number_of_threads() -> None:
    frame = lockworks.sim(
        machine="kunpeng-920",
        lock=["qspinlock", "cna"],
        threads=range(1, 3),
        ms=0.5,
        set={"machine.rmw_cycles": 30},
    )
    assert isinstance(frame, pandas.DataFrame)
    assert list(zip(frame["threads"], frame["lock"], strict=True)) == [
        (1, "qspinlock"),
        (1, "cna"),
        (2, "qspinlock"),
        (2, "cna"),
    ]
    assert set(frame["machine"]) == {"kunpeng-920"}
    assert (frame["operations_per_second"] > 1e5).all()
    assert (frame["wait_ns.p50"] > 0).all()
    assert not any(isinstance(cell, dict) for cell in frame.to_numpy().flat)
    frame.to_parquet("sim.parquet")
    assert pandas.read_parquet("sim.parquet")["lock"].equals(frame["lock"])


def test_both_libraries_have_the_same_rows() -> None:
    arguments: dict[str, Any] = {"lock": "cna", "threads": 2, "ms": 0.2, "seeds": 1}
    one = lockworks.sim(frame="pandas", **arguments)
    other = lockworks.sim(frame="polars", **arguments)
    assert isinstance(other, polars.DataFrame)
    assert other.columns == list(one.columns)
    assert other["operations_per_second"].to_list() == one["operations_per_second"].to_list()
    with pytest.raises(ValueError, match="arrow"):
        lockworks.locks(frame="arrow")  # type: ignore[arg-type]


def test_a_sweep_has_a_row_for_each_point_and_keeps_its_results(directory: Path) -> None:
    plan = directory / "plan.toml"
    plan.write_text(PLAN)
    frame = lockworks.sweep(plan)
    assert len(frame) == 10
    store = (directory / "plan.results.jsonl").read_text()
    failed = frame[frame["error"].notna()]
    assert list(failed["lock"]) == ["busted"]
    assert failed["error"].iloc[0].startswith("VIOLATION: ")
    assert lockworks.sweep("plan.toml").equals(frame)
    assert (directory / "plan.results.jsonl").read_text() == store


def test_regret_has_a_row_for_each_lock_or_cell() -> None:
    arguments: dict[str, Any] = {
        "machine": "oracle-x5-4",
        "workload": "locktorture-new",
        "threads": [1, 8],
        "ms": 0.2,
        "lock": ["cna", "qspinlock"],
        "against": ["cna", "qspinlock"],
    }
    verdicts = lockworks.regret(**arguments)
    assert list(verdicts["lock"]) == ["cna", "qspinlock"]
    cells = lockworks.regret(each="cell", **arguments)
    assert len(cells) == 4
    worst = cells.groupby("lock")["share"].min()
    assert worst["cna"] == pytest.approx(verdicts["worst.share"].iloc[0])


def test_a_published_table_has_a_row_for_each_figure() -> None:
    tables = lockworks.reproduce()
    assert "cna_locktorture" in set(tables["table"])
    figures = lockworks.reproduce("cna_locktorture", ms=0.2)
    assert set(figures["column"]) >= {"stock", "cna"}
    error = 100 * (figures["simulated"] / figures["published"] - 1)
    assert list(error) == pytest.approx(list(figures["error_percent"]))
    assert "speedup.simulated" in figures and "fitted.simulated" in figures


def test_machines_and_locks_are_listed_and_described() -> None:
    machines = lockworks.machines().set_index("name")
    assert machines.loc["kunpeng-920", "nodes"] == 4
    values = lockworks.machines("kunpeng-920").set_index("key")
    assert values.loc["clock_ghz", "value"] == 2.6
    locks = lockworks.locks().set_index("name")
    assert locks.loc["cna", "order"] == "NUMA-aware"
    assert "hqlock_fairness_threshold" in set(lockworks.locks("hq")["name"])
    assert len(lockworks.locks("tas")) == 0


@pytest.mark.parametrize("progress", [False, True])
def test_an_error_has_the_line_and_the_status(progress: bool) -> None:
    with pytest.raises(lockworks.Error) as caught:
        lockworks.sim(lock="mutx", progress=progress)
    assert str(caught.value).startswith("unknown lock 'mutx'; did you mean 'mutex'?")
    assert caught.value.status == 2
    with pytest.raises(lockworks.Error, match=r"^VIOLATION: busted") as caught:
        lockworks.sim(lock="busted", threads=2, ms=0.2, progress=progress)
    assert caught.value.status == 1


def test_a_missing_command_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sysconfig.get_path", lambda name: "")
    monkeypatch.delenv("LOCKWORKS")
    with pytest.raises(lockworks.Error, match="no command lockworks"):
        lockworks.locks()
    monkeypatch.setenv("LOCKWORKS", "/nowhere/lockworks")
    with pytest.raises(lockworks.Error, match="cannot run /nowhere/lockworks"):
        lockworks.locks()


def test_progress_is_shown_where_it_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    arguments: dict[str, Any] = {"lock": "cna", "threads": [1, 2], "ms": 5}
    lockworks.sim(**arguments)
    assert capfd.readouterr().err == ""
    lockworks.sim(progress=True, **arguments)
    assert "runs" in capfd.readouterr().err


def test_an_interruption_ends_the_command(directory: Path) -> None:
    plan = directory / "plan.toml"
    plan.write_text('[[sweep]]\nlocks = "cna"\nthreads = 36\nseeds = "1..100000"\n')
    program = "import lockworks; lockworks.sweep('plan.toml')"
    paths = os.pathsep.join(sys.path)
    python = subprocess.Popen(
        [sys.executable, "-c", program],
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
    )
    store = directory / "plan.results.jsonl"
    while not store.exists() or not store.stat().st_size:
        assert python.poll() is None
        time.sleep(0.02)
    # Python alone gets the signal, as in a notebook.
    python.send_signal(signal.SIGINT)
    _, messages = python.communicate(timeout=60)
    assert b"KeyboardInterrupt" in messages
    # No other process has the store locked, and what was finished is kept.
    plan.write_text('[[sweep]]\nlocks = "cna"\nthreads = 36\nseeds = 1\n')
    assert len(lockworks.sweep("plan.toml")) == 1


def test_the_example_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/guides/python.md").read_text()
    for name in ["plan.toml", "example.py"]:
        block = re.search(rf"^```\w+ file={name}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        assert block, name
        Path(name).write_text(block[1])
    runpy.run_path("example.py")
    assert "mutex" in capsys.readouterr().out
    assert Path("results.parquet").exists()


def test_a_recording_is_a_row_for_each_step(tmp_path: Path) -> None:
    file = tmp_path / "r.lw"
    header = {
        "version": 1,
        "threads": [{"function": None, "steps": 1}, {"function": "run", "steps": 2}],
        "objects": ["lock"],
        "places": ["main", "run"],
    }
    none = 2**32 - 1
    steps = [
        (0, none, none, 0, 65535, 1, 0),
        (70, 0, 1, 4, 3, 4, 0),
        (90, 0, none, 0, 3, 6, 2 | 4),
    ]
    packed = b"".join(struct.pack("<QIIIHBB", *step) for step in steps)
    whole = json.dumps(header).encode() + b"\n" + packed
    file.write_bytes(gzip.compress(whole))
    frame = lockworks.recording(file)
    assert list(frame["thread"]) == [0, 1, 1]
    assert list(frame["kind"]) == ["begins", "acquires", "releases"]
    assert frame["place"][1] == "run" and frame["object"][2] == "lock"
    assert list(frame["away_ns"]) == [0, 64, 0]
    assert frame["mode"][2] == "write" and frame["slept"][2]
    assert len(lockworks.recording(file, frame="polars")) == len(frame)
    for damaged in [gzip.compress(whole)[:-20], gzip.compress(whole[:-1]), b"no recording"]:
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="no whole recording"):
            lockworks.recording(file)
    file.write_bytes(gzip.compress(whole.replace(b'"version": 1', b'"version": 2')))
    with pytest.raises(ValueError, match="version 2"):
        lockworks.recording(file)
