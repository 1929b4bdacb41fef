#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of includes.py: it refuses each #include that breaks a rule, and no other."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import includes


class Includes(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        for path in (
            "locks/mutex.h",
            "locks/parts/queue.h",
            "lib/include/lockworks/lockworks.h",
            "lib/include/lockworks/nearness.h",
            "tests/user/test.h",
            *(f"worlds/{world}/world.h" for world in ("user", "sim")),
            "worlds/sim/line.h",
        ):
            self.write(path, "")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def found(self, path: str, *names: str) -> list[str]:
        """Whatever is wrong with a file that includes these names, without the file's own name."""
        self.write(path, "\n".join(f"#include {name}" for name in names))
        lines = includes.violations(self.root)
        (self.root / path).unlink()
        return [line.removeprefix(f"{path}:") for line in lines]

    def assert_found(self, path: str, name: str, message: str) -> None:
        found = self.found(path, "<stdio.h>", name)
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])

    def test_allowed(self) -> None:
        names = ("<linux/mutex.h>", '"mutex.h"', '"parts/queue.h"', '"world.h"', '"../linux.h"')
        self.assertEqual(self.found("locks/a.c", *names), [])
        self.assertEqual(self.found("lib/a.c", "<lockworks/lockworks.h>", '"queue.h"'), [])
        self.assertEqual(self.found("worlds/user/a.c", "<lockworks/nearness.h>"), [])
        self.assertEqual(self.found("tests/user/a.c", '"../../worlds/sim/line.h"'), [])

    def test_name(self) -> None:
        self.assert_found("locks/a.c", '"test.h"', "2: test.h is in tests/user; a file in locks")

    def test_another_world(self) -> None:
        self.assert_found("worlds/user/a.c", "<line.h>", "line.h is in worlds/sim")

    def test_other_file_of_a_directory(self) -> None:
        name = "<lockworks/lockworks.h>"
        self.assert_found("worlds/user/a.c", name, "lockworks.h is in lib/include/lockworks")

    def test_path(self) -> None:
        self.assert_found("locks/a.c", '"user/test.h"', "user/test.h is in tests/user")
        self.assert_found("locks/a.c", "<lockworks/lockworks.h>", "is in lib/include/lockworks")

    def test_parent_directory(self) -> None:
        self.assert_found("interpose/preload/a.c", '"../../tests/user/test.h"', "without '..'")
        self.assert_found("locks/parts/a.h", '"../mutex.h"', "without '..'")

    def test_cpp(self) -> None:
        for suffix in ("cc", "cpp", "hpp"):
            path = f"lib/include/lockworks/a.{suffix}"
            self.assert_found(path, '"test.h"', "test.h is in tests/user")

    def test_unlisted_directory(self) -> None:
        for directory in ("locks/more", "worlds/moon", "clients/a", "lib/a", "interpose/a"):
            found = self.found(f"{directory}/a.c", "<stdio.h>")
            self.assertEqual(found, [f" add {directory} to ALLOWED in scripts/includes.py"])


if __name__ == "__main__":
    unittest.main()
