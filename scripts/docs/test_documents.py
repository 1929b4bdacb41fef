#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of documents.py: each mistake in a document is found, at its line."""

import tempfile
import unittest
from pathlib import Path

import documents
import generated

FAKE = """#!/bin/bash
[[ " $* " != *" --bogus "* ]] || { echo "unexpected argument --bogus"; exit 2; }
"""


class Documents(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        command = self.scratch / "bin" / "lockworks"
        command.parent.mkdir()
        command.write_text(FAKE)
        command.chmod(0o755)
        library = self.scratch / "lib" / "pkgconfig" / "lockworks.pc"
        library.parent.mkdir(parents=True)
        library.write_text("Name: lockworks\nDescription: none\nVersion: 1\n")
        self.runner = documents.Runner(command, self.scratch)

    def check(self, text: str) -> list[tuple[int, str]]:
        path = self.scratch / "a.md"
        path.write_text(text)
        documents.read.cache_clear()
        document = documents.read(path)
        failures = [*documents.check_annotations(document), *documents.check_links(document)]
        failures += documents.check_paths(document)
        failures += documents.check_generated(document)
        failures = failures or list(self.runner.run_document(document))
        return [(failure.line, failure.message.split("\n")[0]) for failure in failures]

    def test_command_runs_and_fails(self) -> None:
        self.assertEqual(self.check("```sh run\ntrue\n```\n"), [])
        self.assertEqual(self.check("\n```sh run\nfalse | cat\n```\n")[0][0], 2)
        self.assertEqual(self.check("```sh run status=1\nfalse\n```\n"), [])
        self.assertEqual(len(self.check("```sh run status=1\ntrue\n```\n")), 1)

    def test_blocks_share_a_directory(self) -> None:
        text = "```toml file=d/x.toml\na = 1\n```\n```sh run\ngrep -q 'a = 1' d/x.toml\n```\n"
        self.assertEqual(self.check(text), [])

    def test_output(self) -> None:
        run = "```sh run\nprintf 'a  12.5 M\\nb 3\\n'\n```\n"
        self.assertEqual(self.check(run + "```text output\na 7 M\n...\nb 9\n```\n"), [])
        self.assertEqual(self.check(run + "```text output\n... M\n```\n"), [])
        self.assertEqual(
            self.check(run + "```text output\na 7 M\nc 9\n```\n"), [(6, "not printed: c 9")]
        )
        self.assertEqual(
            self.check(run + "```text exact\na 7 M\n```\n"), [(5, "not printed: a 7 M")]
        )
        # The order counts.
        self.assertEqual(len(self.check(run + "```text output\nb 3\na 1 M\n```\n")), 1)

    def test_output_of_nothing(self) -> None:
        self.assertEqual(
            self.check("```text output\na\n```\n"), [(1, "output of no block before it")]
        )

    def test_annotations_are_required(self) -> None:
        self.assertEqual(self.check("```sh\ntrue\n```\n")[0][0], 1)
        self.assertEqual(self.check("```c\nint a;\n```\n")[0][0], 1)
        self.assertEqual(self.check("```\ntrue\n```\n")[0][0], 1)
        self.assertEqual(
            self.check("```sh norun:\ntrue\n```\n"), [(1, "norun: the reason is missing")]
        )
        self.assertEqual(self.check("```text\na picture\n```\n"), [])

    def test_data_must_parse(self) -> None:
        self.assertEqual(self.check("```toml\na = 1\n```\n"), [])
        self.assertEqual(self.check("\n```toml\na = \n```\n")[0][0], 2)
        self.assertEqual(self.check("```json\n{\n```\n")[0][0], 1)

    def test_options_of_what_is_not_run(self) -> None:
        text = "```sh norun: an hour\nmake # lockworks --bogus\n"
        text += "X=1 lockworks sim \\\n  {} | cat\n```\n"
        self.assertEqual(self.check(text.format("--lock a -- --bogus")), [])
        self.assertEqual(self.check(text.format("--bogus"))[0][0], 3)
        self.assertEqual(self.check("a\n\n`lockworks sim\n--bogus`\n")[0][0], 3)

    def test_programs(self) -> None:
        good = '```c program=p\n#include <stdio.h>\nint main(void)\n{\n\tputs("x 1");\n}\n```\n'
        self.assertEqual(self.check(good + "```text output\nx 2\n```\n"), [])
        self.assertEqual(len(self.check(good.replace("puts", "put"))), 1)
        self.assertEqual(len(self.check(good.replace("puts", "return 1; puts"))), 1)

    def test_links(self) -> None:
        self.assertEqual(
            self.check("# One, `two`!\n[a](#one-two) [b](a.md#one-two) <http://x>\n"), []
        )
        self.assertEqual(self.check("[a](b.md)\n")[0], (1, "b.md: there is no such file"))
        self.assertEqual(self.check("text\n[a](a.md#x)\n")[0][0], 2)

    def test_paths(self) -> None:
        self.assertEqual(self.check("`scripts/no.py`\n")[0][0], 1)
        self.assertEqual(self.check("`locks/NAME.c` `no/such.c` `locks/ + 1`\n"), [])

    def test_generated_tables(self) -> None:
        events = self.scratch / "events.h"
        events.write_text(
            "/*\n * LW_EVENT(x, y)\n */\n#define LW_MAXIMUM LW_EVENT\n"
            'LW_EVENT(one,\n\t "waits, "\n\t "all")\nLW_MAXIMUM(two, "most")\n#undef LW_EVENT\n'
        )
        block = f"<!-- generated: {events} -->\n{{}}<!-- end -->\n"
        written = generated.update(f"# A\n{block.format('')}end\n")
        rows = "| event | meaning |\n| -- | -- |\n| `one` | waits, all |\n"
        rows += "| `two` | most; not a sum |\n"
        self.assertEqual(written, f"# A\n{block.format(rows)}end\n")
        self.assertEqual(self.check(written), [])
        self.assertEqual(
            self.check(written.replace("waits", "wait")), [(5, "not as in its list: make tables")]
        )
        self.assertEqual(
            self.check(f"\n<!-- generated: {events} -->\n{rows}"),
            [(2, "the block has no <!-- end -->")],
        )
        no_list = "<!-- generated: no.h -->\n<!-- end -->\n"
        self.assertEqual(self.check(no_list), [(1, "no.h: there is no such list")])

    def test_generated_tables_of_the_registry(self) -> None:
        registry = Path(__file__).parents[2] / "locks" / "registry"
        for name, row in (
            ("locks_list.h", "| `qspinlock` | FIFO | spins | queued spinlock: "),
            ("locks_list.h", "| `busted` | none | none | "),
            (
                "tunables_list.h",
                "| `hqlock_remote_handoffs_turn_numa` | 2 | 2 | 2^63 - 1 | ",
            ),
            ("tunables_list.h", "| `pv_spin` | 500 | 512 | 2^32 - 1 | "),
        ):
            self.assertIn(row, generated.table(registry / name))


if __name__ == "__main__":
    unittest.main()
