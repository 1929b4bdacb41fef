# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Timelines of `--trace`, read with the code of Perfetto's published schema."""

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

LOCKWORKS = Path(__file__).parents[2] / "target/debug/lockworks"
SIMULATION = ["sim", "--machine", "haswell-ex-4", "--seeds", "1", "--ms"]


def timeline(path: Path, *arguments: str, status: int = 0) -> Any:
    """The timeline that a command writes. All its fields are in the schema."""
    subcommand, *rest = arguments
    command = [str(LOCKWORKS), subcommand, "--trace", str(path), *rest]
    assert subprocess.run(command, check=False, capture_output=True).returncode == status
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    known(trace)
    return trace


def known(message: Message) -> None:
    """Fails if a message, or one in it, has a field that the schema does not have."""
    assert not len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                known(one)


def slices(trace: Any) -> Counter[str]:
    """The number of slices of each name. All end, after they begin."""
    opened: dict[int, list[tuple[str, int]]] = {}
    found: Counter[str] = Counter()
    for packet in trace.packet:
        if packet.HasField("track_event"):
            event = packet.track_event
            stack = opened.setdefault(event.track_uuid, [])
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                stack.append((event.name, packet.timestamp))
                found[event.name] += 1
            elif event.type == TrackEvent.TYPE_SLICE_END:
                _, begin = stack.pop()
                assert packet.timestamp >= begin
    assert not any(opened.values())
    return found


def tracks(trace: Any) -> list[str]:
    """The names of the tracks, each with those that it is in."""
    paths: dict[int, str] = {0: ""}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            paths[track.uuid] = f"{paths[track.parent_uuid]}/{track.name}"
    return list(paths.values())


def test_simulation(tmp_path: Path) -> None:
    options = ["2", "--lock", "qspinlock,cna", "--threads", "8", "--placement", "spread"]
    trace = timeline(tmp_path / "t.pftrace", *SIMULATION, *options)
    assert "/cna, 8 threads/NUMA node 1/thread 1" in tracks(trace)
    found = slices(trace)
    assert found["holds"] > 1000
    assert found["waits"] >= found["holds"]
    # An arrow to a holder begins at the one before.
    begun: set[int] = set()
    arrows = 0
    for packet in trace.packet:
        assert begun.issuperset(packet.track_event.terminating_flow_ids)
        arrows += len(packet.track_event.terminating_flow_ids)
        begun.update(packet.track_event.flow_ids)
    assert arrows > 1000


def test_threads_that_share_cpus(tmp_path: Path) -> None:
    options = ["10", "--lock", "futex", "--threads", "32", "--cpus", "4"]
    workload = ["--workload", "leveldb_readrandom"]
    trace = timeline(tmp_path / "t.pftrace", *SIMULATION, *options, *workload)
    found = slices(trace)
    assert min(found[name] for name in ["holds", "waits", "sleeps", "has no CPU"]) > 0


def test_torture(tmp_path: Path) -> None:
    options = ["--lock", "mutex,pthread_mutex", "-t", "2", "-s", "0.1", "--rounds", "1"]
    trace = timeline(tmp_path / "t.pftrace", "torture", *options)
    assert "/mutex, 2 threads/NUMA node 0/thread 0" in tracks(trace)
    assert slices(trace)["holds"] > 1000


PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static int turns[2];
static bool ends_early;
static atomic_int waiter; /* the thread that is about to wait for the first holder */

static bool sleeps(int thread)
{
	char path[64], state;
	bool read;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	file = fopen(path, "r");
	read = file && fscanf(file, "%*d (program) %c", &state) == 1;
	if (file)
		fclose(file);
	return read && state == 'S';
}

static void *work(void *argument)
{
	int *own = argument;

	if (own == &turns[1])
		waiter = gettid();
	while (ends_early || *own < 100) {
		pthread_mutex_lock(&hot);
		usleep(100);
		++*own;
		if (ends_early && turns[0] >= 10 && turns[1] >= 10)
			_exit(0);
		pthread_mutex_unlock(&hot);
		usleep(100);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	ends_early = argc > 1;
	pthread_mutex_lock(&hot);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, &turns[i]);
	while (!waiter || !sleeps(waiter))
		usleep(100);
	pthread_mutex_unlock(&hot);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


def test_profile(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    program = tmp_path / "program"
    subprocess.run(["cc", "-g", "-pthread", "-o", program, f"{program}.c"], check=True)
    trace = timeline(tmp_path / "t.pftrace", "profile", "--", str(program))
    found = slices(trace)
    assert found["holds"] == 201
    assert 0 < found["waits"] <= 200
    threads = [track for track in tracks(trace) if "/thread " in track]
    assert [thread.rsplit("/")[-1] for thread in threads] == ["thread 1", "thread 2", "thread 3"]
    details = {
        one.string_value
        for packet in trace.packet
        for one in packet.track_event.debug_annotations
        if one.name == "place"
    }
    assert details == {"work program.c:35", "main program.c:51"}
    # A program that ends early leaves a thread that holds the mutex, and maybe one that waits.
    found = slices(timeline(tmp_path / "t.pftrace", "profile", "--", str(program), "early"))
    assert found["holds"] >= 20
    assert found["waits"] > 0


def test_nothing_locked_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    command = [str(LOCKWORKS), "profile", "--trace", str(path), "--", "true"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "no mutex or rwlock was locked" in done.stderr
    assert not path.exists()


def test_counterexample(tmp_path: Path) -> None:
    trace = timeline(tmp_path / "t.pftrace", "check", "--lock", "busted", status=1)
    assert slices(trace) == {"lw_busted_lock: store lock->unused": 2}
    step = trace.packet[-2].track_event, trace.packet[-3].track_event
    [begin] = [event for event in step if event.type == TrackEvent.TYPE_SLICE_BEGIN]
    details = {one.name: one.string_value for one in begin.debug_annotations}
    assert details["effect"] == "lock := 1"


def test_nothing_broken_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    command = [str(LOCKWORKS), "check", "--lock", "tas", "--trace", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "no promise is broken" in done.stderr
    assert not path.exists()


def test_trace_processor(tmp_path: Path) -> None:
    """Perfetto's own reader, where its binary is installed or can be downloaded."""
    from perfetto.trace_processor import TraceProcessor

    path = tmp_path / "t.pftrace"
    timeline(path, *SIMULATION, "2", "--lock", "cna", "--threads", "8")
    try:
        processor = TraceProcessor(trace=str(path))
    except Exception as error:  # Whatever the download meets.
        pytest.skip(f"no trace_processor: {error}")
    with processor:
        query = "select count(*) as n from slice where name = 'holds'"
        assert next(iter(processor.query(query))).n > 1000
        query = "select count(*) as n from flow"
        assert next(iter(processor.query(query))).n > 1000
        query = "select count(*) as n from stats where severity = 'error' and value > 0"
        assert next(iter(processor.query(query))).n == 0
