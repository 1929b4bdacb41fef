#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of figures.sh: it writes all figures or fails, and prints each value that differs."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Stands for the lockworks command. It fails if its subcommand is in $FAILS.
COMMAND = """#!/bin/bash
[[ $1 != "$FAILS" ]] || exit 1
case "$*" in
"machines --json") echo '[{"name": "this", "cpus": 8}]' ;;
"reproduce --json") echo '[{"table": "old"}]' ;;
"check --quick --json") echo '[{"lock": "tas", "states": 7, "seconds": 0.1}]' ;;
*) echo '{"jobs": 1}' >"${!#}" ;;
esac
"""


class Figures(unittest.TestCase):
    directory: Path
    written: Path

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.directory = Path(temporary.name)
        command = cls.directory / "lockworks"
        command.write_text(COMMAND)
        command.chmod(0o755)
        cls.written = cls.directory / "written"
        cls.figures("write", str(cls.written)).check_returncode()

    @classmethod
    def figures(cls, *args: str, fails: str = "") -> subprocess.CompletedProcess[str]:
        command = str(cls.directory / "lockworks")
        return subprocess.run(
            [ROOT / "scripts/figures.sh", *args],
            cwd=ROOT,
            env={**os.environ, "LOCKWORKS": command, "FAILS": fails},
            capture_output=True,
            text=True,
        )

    def copies(self) -> tuple[Path, Path]:
        """Two directories with the same figures; simulations are left out to save time."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        old, new = Path(temporary.name, "old"), Path(temporary.name, "new")
        for copy in (old, new):
            shutil.copytree(self.written, copy, ignore=shutil.ignore_patterns("sim"))
        return old, new

    def compare(self, *args: str | Path) -> tuple[int, str]:
        done = self.figures("compare", *map(str, args))
        return done.returncode, done.stdout

    def test_all_are_written(self) -> None:
        out = self.written
        workloads = {path.stem for path in (ROOT / "experiments/workloads").glob("*.toml")}
        self.assertEqual({path.stem for path in (out / "sim/this").iterdir()}, workloads)
        self.assertTrue((out / "reproduce/old.json").exists())
        states = json.loads((out / "check/tas.json").read_text())
        self.assertEqual(states, [{"lock": "tas", "states": 7}])

    def test_a_failure_is_a_failure(self) -> None:
        for fails in ("machines", "sim", "reproduce", "check"):
            done = self.figures("write", str(self.directory / fails), fails=fails)
            self.assertNotEqual(done.returncode, 0, fails)

    def test_differences(self) -> None:
        old, new = self.copies()
        self.assertEqual(self.compare(old, new), (0, ""))
        states = new / "check/tas.json"
        states.write_text(states.read_text().replace("7", "8"))
        (old / "reproduce/old.json").unlink()
        status, text = self.compare(old, new)
        self.assertEqual(status, 1)
        self.assertIn("check/tas.json: < 0.states = 7\ncheck/tas.json: > 0.states = 8\n", text)
        self.assertIn(f"reproduce/old.json: only in {new}\n", text)

    def test_renamed_keys(self) -> None:
        old, new = self.copies()
        states = new / "check/tas.json"
        states.write_text(states.read_text().replace("states", "found"))
        renamed = old.with_name("renamed")
        renamed.write_text("states found\n")
        self.assertEqual(self.compare(old, new)[0], 1)
        self.assertEqual(self.compare("--renamed", renamed, old, new), (0, ""))

    def test_a_broken_file(self) -> None:
        old, new = self.copies()
        for directory in (old, new):
            (directory / "check/tas.json").write_text("[")
        self.assertNotEqual(self.compare(old, new)[0], 0)


if __name__ == "__main__":
    unittest.main()
