# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The results of the `lockworks` command as data frames.

Each function runs the command of its name. Arguments are the options of that command, with `_` for
`-`: a list where the option takes several values, a dict where it takes KEY=VALUE, True where it
takes no value. `lockworks sim --help-all` says what each does. recording() reads a file that the
command has written. All functions also have:

- frame: "pandas" or "polars". By default pandas, or polars where only that is installed.
- progress: show the command's progress on standard error. By default if that is a terminal.

A nested result has columns with dots in their names, such as `wait_ns.p50`. All functions raise
Error if the command fails.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from . import frames, recordings
from .command import Error, Scalar, Value, run, words_of
from .frames import Frame, Library

__all__ = ["Error", "locks", "machines", "recording", "regret", "reproduce", "sim", "sweep"]

Names = str | Iterable[str]
Numbers = int | Iterable[int]
PathName = str | os.PathLike[str]


def sim(
    *,
    lock: Names | None = None,
    machine: PathName | None = None,
    workload: PathName | None = None,
    threads: Numbers | None = None,
    ms: float | None = None,
    seeds: int | None = None,
    set: Mapping[str, Scalar] | None = None,
    tune: Mapping[str, Scalar] | None = None,
    frame: Library = None,
    progress: bool | None = None,
    **options: Value,
) -> Frame:
    """Simulate locks on a machine: a row for each number of threads and lock.

    - lock: locks of `locks()`. Default: all that are not broken.
    - machine, workload: a name, or the path of a file that describes one.
    - threads: numbers of threads. Default: 1, 2, 4, ... up to the CPUs of the machine.
    - ms: virtual time of each run, in milliseconds.
    - seeds: number of seeds; figures are those of the run with the median throughput.
    - set: values of the model, such as {"machine.rmw_cycles": 30}.
    - tune: tunables of locks, such as {"hqlock_fairness_threshold": 100}.

    Columns: `machine`, `workload`, `placement`, `cpus`, `virtual_milliseconds`, and the fields of
    `rows` of `lockworks sim --json`. Of these, `operations_per_second` is in virtual time,
    `reference_ratio.median` is throughput over that of the reference lock, `fairness` is from 0.5
    (fair) to 1, `wait_ns.p50` and the like are waits in nanoseconds, and `events.NAME` are counts.
    """
    given: dict[str, Value] = {
        "lock": lock,
        "machine": machine,
        "workload": workload,
        "threads": threads,
        "ms": ms,
        "seeds": seeds,
        "set": set,
        "tune": tune,
    }
    printed = run(["sim", "--json", *words_of(given | options)], progress=progress)
    results = json.loads(printed)
    about = ("machine", "workload", "placement", "cpus", "virtual_milliseconds")
    same = {name: results[name] for name in about}
    return frames.of_rows((same | row for row in results["rows"]), frame)


def sweep(
    plan: PathName,
    *,
    store: PathName | None = None,
    jobs: int | None = None,
    part: str | None = None,
    retry: bool = False,
    engine: Literal["local", "dask"] | None = None,
    scheduler: str | None = None,
    frame: Library = None,
    progress: bool | None = None,
    **options: Value,
) -> Frame:
    """Run all points of a plan that its store does not have: a row for each point of the plan.

    - plan: the path of a TOML file.
    - store: the file of results. Default: PLAN.results.jsonl, next to the plan.
    - jobs: number of points that run at the same time. Default: the CPUs of this machine.
    - part: "K/N": only every Nth point, from the Kth on.
    - retry: run points that failed again.
    - engine: "dask" runs the points on a Dask cluster. Default: "local", this machine.
    - scheduler: the address of the cluster. Default: one that is started on this machine.

    Columns: `kind`, the options of the points with their defaults, the results, and `error`, which
    says why a point failed. docs/reference/sweep.md describes them. A point that fails raises no
    Error.
    """
    given: dict[str, Value] = {
        "store": store,
        "jobs": jobs,
        "part": part,
        "retry": retry,
        "engine": engine,
        "scheduler": scheduler,
    }
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "results.json"
        words = words_of(given | options | {"output": output})
        # Status 1: points failed.
        run(["sweep", *words, "--", os.fspath(plan)], progress=progress, good=(0, 1))
        rows = json.loads(output.read_text())
    return frames.of_rows(rows, frame)


def regret(
    *,
    each: Literal["lock", "cell"] = "lock",
    lock: Names | None = None,
    machine: Names | None = None,
    workload: Names | None = None,
    threads: Numbers | None = None,
    ms: float | None = None,
    seeds: int | None = None,
    store: PathName | None = None,
    jobs: int | None = None,
    frame: Library = None,
    progress: bool | None = None,
    **options: Value,
) -> Frame:
    """How far locks are from the best fair one: a row for each lock, or for each cell and lock.

    A cell is a machine, a workload and a number of threads. A share is throughput over that of the
    best lock of the cell.

    - each: what has a row.
    - lock: locks to judge.
    - machine, workload, threads: the cells. Default: those of `lockworks regret`.
    - ms: virtual time of each run, in milliseconds.
    - seeds: number of seeds; the median counts.
    - store: the file of results. Default: regret.results.jsonl in the current directory.
    - jobs: number of simulations that run at the same time. Default: the CPUs of this machine.

    Columns of "lock": `lock`, `geometric_mean`, `fifth_percentile`, `within_5_percent`,
    `worst_of_stock`, `unfair_cells`, `is_fair`, and the worst cell as `worst.machine`,
    `worst.share` and so on. Columns of "cell": `machine`, `workload`, `threads`, `cpus`, `lock`,
    `operations_per_second`, `fairness`, `share`, `best`. docs/reference/sweep.md describes them.
    """
    if each not in ("lock", "cell"):
        raise ValueError(f"each={each!r}: it must be 'lock' or 'cell'")
    given: dict[str, Value] = {
        "lock": lock,
        "machine": machine,
        "workload": workload,
        "threads": threads,
        "ms": ms,
        "seeds": seeds,
        "store": store,
        "jobs": jobs,
    }
    with tempfile.TemporaryDirectory() as directory:
        csv = Path(directory) / "cells.csv"
        words = words_of(given | options | {"csv": csv})
        printed = run(["regret", "--json", *words], progress=progress)
        if each == "cell":
            return frames.of_csv(csv, frame)
    rows = json.loads(printed)["locks"]
    return frames.of_rows((row | {"worst": row["worst"][0]} for row in rows), frame)


def reproduce(
    table: str | None = None,
    *,
    ms: float | None = None,
    set: Mapping[str, Scalar] | None = None,
    frame: Library = None,
    progress: bool | None = None,
    **options: Value,
) -> Frame:
    """Published figures beside their simulation: a row for each figure. Without a table: a list.

    - table: a table, or "all".
    - ms: virtual time of each run, in milliseconds. Default: that of the table.
    - set: values of the model, such as {"machine.rmw_cycles": 30}.

    Columns: `table`, `unit`, which is that of `published` and `simulated`, and the fields of `rows`
    of `lockworks reproduce --json`. Of these, `column` is the column of the published table,
    `error_percent` is that of the figure, and `speedup.error_percent` that of the speedup over the
    baseline. `fitted.NAME` is the same with the saved fit, where one holds for the table.
    """
    words = [] if table is None else [table]
    words += words_of({"ms": ms, "set": set} | options)
    results = json.loads(run(["reproduce", "--json", *words], progress=progress))
    if table is None:
        return frames.of_rows(results, frame)
    rows = []
    for one in results if isinstance(results, list) else [results]:
        fitted = one["fitted"]["rows"] if one.get("fitted") else [None] * len(one["rows"])
        for row, fit in zip(one["rows"], fitted, strict=True):
            same = {"table": one["table"], "unit": one["unit"]} | row
            figures = ("simulated", "error_percent", "speedup")
            rows.append(same | ({"fitted": {name: fit[name] for name in figures}} if fit else {}))
    return frames.of_rows(rows, frame)


def machines(
    machine: PathName | None = None, *, frame: Library = None, progress: bool | None = None
) -> Frame:
    """The machines that can be simulated, a row for each, or the values of one.

    - machine: a name, the path of a TOML file, or "this", which measures this machine for a minute.

    Columns of the list: `name`, `title`, `cpus`, `nodes`, `memory_order`, and `marks.E` and the
    like: how many values have this mark. Columns of a machine: `key`, `unit`, `value`, `low`,
    `high`, `mark`, `source`, `note`.
    """
    words = [] if machine is None else [os.fspath(machine)]
    results = json.loads(run(["machines", "--json", *words], progress=progress))
    return frames.of_rows(results if machine is None else results["values"], frame)


def locks(lock: str | None = None, *, frame: Library = None) -> Frame:
    """The locks and lockrefs, a row for each, or the tunables of one.

    Columns of the list: `name`, `kind`, `bytes`, `node_bytes`, `order`, `waiting`, `summary`,
    `origin`, `broken`, `historic`, `unlocked`. Columns of a lock: `name`, `default`,
    `kernel_default`, `minimum`, `maximum`, `meaning`.
    """
    words = [] if lock is None else [lock]
    results = json.loads(run(["locks", "--json", *words], progress=False))
    if lock is not None:
        return frames.of_rows(results["tunables"], frame)
    for row in results:
        del row["tunables"]
    return frames.of_rows(results, frame)


def recording(file: PathName, *, frame: Library = None) -> Frame:
    """The steps of a file that `lockworks record` has written, a row for each.

    Columns: `thread` (from 0), `function` (that it runs), `ns` (since the recording began), `kind`
    ("acquires" and so on), `object` (the lock or condition), `place`, `away_ns` (without a CPU
    since the last step), `slept`, `tried` (a trylock acquired it), `mode` ("mutex", "read" or
    "write"), `cpu`. Rows are sorted by thread, then by time. Raises ValueError if the file is no
    recording of this version.
    """
    return frames.of_columns(recordings.columns(Path(file)), frame)
