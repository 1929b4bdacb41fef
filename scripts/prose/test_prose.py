#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of prose.py: each rule finds its mistake, at its line, and nothing in good text."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import prose

RULES = prose.read_rules()


def found(path: str, text: str) -> list[tuple[int, str]]:
    return [(f.line, f.message.split(":")[0]) for f in prose.check(path, text, RULES)]


class Comments(unittest.TestCase):
    def test_word_in_block_comment(self) -> None:
        text = "int a;\n/*\n * A waiter may\n * linger here.\n */\nint linger;\n"
        self.assertEqual(found("a.c", text), [(4, "“linger”")])

    def test_word_across_lines(self) -> None:
        self.assertEqual(found("a.rs", "x();\n/// Then it gives\n/// up.\n"), [(2, "“gives up”")])

    def test_sentence_start(self) -> None:
        text = "// It spins. Who arrives waits.\n"
        self.assertEqual(found("a.rs", text), [(1, "“Who arrives waits. ...”")])

    def test_sentence_start_in_each_comment(self) -> None:
        text = "/* What is here. */\nint a;\n/* What is there. */\n"
        self.assertEqual([line for line, _ in found("a.c", text)], [1, 3])

    def test_question_is_allowed(self) -> None:
        self.assertEqual(found("a.md", "## What does it print?\n"), [])

    def test_code_and_names_are_left_alone(self) -> None:
        text = '/* `linger` and mutex_linger and --overtaking */\nchar *s = "linger";\n'
        self.assertEqual(found("a.c", text), [])

    def test_comment_signs_in_strings(self) -> None:
        self.assertEqual(found("a.rs", 'let s = "/* linger"; let c = \'"\'; // fine\n'), [])

    def test_raw_string(self) -> None:
        self.assertEqual(
            found("a.rs", 'let s = r#"a " // linger "#;\n// linger\n'), [(2, "“linger”")]
        )

    def test_messages(self) -> None:
        text = 'bail!("the lock is not to be had");\n'
        self.assertEqual(found("a.rs", text), [(1, "“to be had”")])

    def test_names_of_rust_tests(self) -> None:
        text = "#[test]\n#[ignore]\n/// Why.\nfn the_end_is_told() {}\nfn it_is_told() {}\n"
        self.assertEqual(found("a.rs", text), [(4, "“is told”")])
        self.assertEqual(found("a.c", text), [])
        self.assertEqual(found("a.rs", "    #[test]\n    fn locks_exclude() {}\n"), [])

    def test_start_of_a_rust_test(self) -> None:
        text = "#[test]\nfn what_is_bad_is_refused() {}\n"
        self.assertEqual(found("a.rs", text), [(2, "“What is bad is ...”")])

    def test_shell_and_toml(self) -> None:
        self.assertEqual(found("a.sh", "x=$#\n# linger\n"), [(2, "“linger”")])
        self.assertEqual(found("a.toml", 'a = "#" # linger\n'), [(1, "“linger”")])
        self.assertEqual(found("Makefile", "a: b # linger\n"), [(1, "“linger”")])


class Documents(unittest.TestCase):
    def test_fenced_code_is_left_alone(self) -> None:
        text = "Good.\n\n```c\n/* linger */\n```\n\nThey linger.\n"
        self.assertEqual(found("a.md", text), [(7, "“linger”")])

    def test_each_item_and_cell(self) -> None:
        text = "- Good.\n- Who comes.\n\n| Whoever |\n"
        self.assertEqual([line for line, _ in found("a.md", text)], [2, 4, 4])

    def test_columns(self) -> None:
        self.assertEqual(found("a.md", "word " * 21 + "\n")[0][0], 1)
        self.assertEqual(found("a.md", "| " + "word " * 40 + "|\n"), [])

    def test_skipped_and_excepted(self) -> None:
        self.assertEqual(found("LICENSES/a.md", "linger"), [])
        self.assertEqual(found("docs/glossary.md", "linger"), [])


class Command(unittest.TestCase):
    def status(self, path: str) -> int:
        """The exit status in a repository whose only file has a word to avoid."""
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(["git", "init", "-q", scratch], check=True)
            file = Path(scratch) / path
            file.parent.mkdir(parents=True)
            file.write_text("/* They linger. */\n")
            command = [str(Path(prose.__file__).resolve())]
            done = subprocess.run(command, cwd=scratch, capture_output=True, check=False)
            return done.returncode

    def test_a_finding_fails(self) -> None:
        self.assertEqual(self.status("lib/a.c"), 1)


if __name__ == "__main__":
    unittest.main()
