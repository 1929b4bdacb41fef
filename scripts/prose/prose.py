#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Check the language of comments, messages, names of tests and documents against words.toml.

Usage: prose.py [PATH]...    Without paths, all files that git knows. A directory stands for what
                             is below it. Exit status 1 if anything was found.
"""

import bisect
import fnmatch
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RULES = Path(__file__).with_name("words.toml")

C_TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<raw>\br(?P<hashes>\#*)".*?"(?P=hashes))
    |(?P<message>"(?:\\.|[^"\\])*")
    |'(?:\\.[^'\n]*|[^\\'\n])'""",
    re.DOTALL | re.VERBOSE,
)
HASH_TOKENS = re.compile(
    r"""(?P<message>\"{3}.*?\"{3}|"(?:\\.|[^"\\\n])*")|'[^'\n]*'|(?P<comment>(?<![\w$\\{])\#[^\n]*)""",
    re.DOTALL,
)
LANGUAGES = {
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".hpp", ".rs"), C_TOKENS),
    **dict.fromkeys((".toml", ".py", ".sh", ".yml", ".yaml", ".map", ".config"), HASH_TOKENS),
    "Makefile": HASH_TOKENS,
    ".editorconfig": HASH_TOKENS,
}
# A string is a message if it has that many words.
MESSAGE_WORDS = 3
# A test in Rust: attributes may follow #[test]. Its name is a sentence.
TEST_NAME = re.compile(r"#\[test\]\s*(?:#\[[^\n]*\]\s*|//[^\n]*\s*)*fn\s+(?P<name>\w+)")
COMMENT_MARKS = re.compile(r"^[ \t]*(?:/\*+|\*+/?|//[/!]?|#)[ \t]?|\*+/[ \t]*$", re.MULTILINE)
CODE = re.compile(r"`[^`]*`|--[\w-]+|https?://\S+|\]\([^)]*\)")


@dataclass(frozen=True)
class Passage:
    """Text for readers, and where each of its lines stands."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Word:
    avoid: re.Pattern[str]
    write: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class Allowance:
    path: str
    words: re.Pattern[str]


@dataclass(frozen=True)
class Rules:
    columns: int
    starts: re.Pattern[str]
    words: tuple[Word, ...]
    skipped: tuple[str, ...]
    exceptions: tuple[Allowance, ...]


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def phrase(avoid: str) -> re.Pattern[str]:
    """Whole words, which may stand on two lines."""
    spaced = avoid.replace(" ", r"\s+")
    return re.compile(rf"(?<![\w-])(?:{spaced})(?![\w-])", re.IGNORECASE)


def read_rules(path: Path = RULES) -> Rules:
    with path.open("rb") as file:
        data = tomllib.load(file)
    for entry in data.get("skip", []) + data.get("except", []):
        if not entry.get("reason"):
            raise SystemExit(f"{path}: {entry['path']} has no reason")
    starts = "|".join(data["sentence_starts"])
    return Rules(
        columns=data["max_columns"],
        starts=re.compile(rf"(?:\A|(?<=[.!?:;])\s|\n[ \t]*\n)\s*((?:{starts})\b[^.!?]*[.!?]?)"),
        words=tuple(
            Word(
                phrase(word["avoid"]),
                word["write"],
                frozenset(word.get("in", ("comments", "messages", "documents"))),
            )
            for word in data["word"]
        ),
        skipped=tuple(entry["path"] for entry in data.get("skip", [])),
        exceptions=tuple(
            Allowance(
                entry["path"], re.compile("|".join(entry.get("words", [".*"])), re.IGNORECASE)
            )
            for entry in data.get("except", [])
        ),
    )


def blank(match: re.Match[str]) -> str:
    """As many characters and lines, and nothing to read: code is not prose."""
    return "\n".join("_" * len(line) for line in match.group().split("\n"))


def passages_of_source(text: str, tokens: re.Pattern[str]) -> Iterator[Passage]:
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    run: list[str] = []
    run_line = 0
    run_end = 0
    for match in tokens.finditer(text):
        line = bisect.bisect_right(starts, match.start())
        if match.lastgroup == "comment" or match.group("comment"):
            # Line comments under each other are one text.
            if run and text[run_end : match.start()].strip() == "" and line == run_line + len(run):
                run.append(match.group())
            else:
                if run:
                    yield comment(run, run_line)
                run, run_line = match.group().split("\n"), line
            run_end = match.end()
        elif (
            match.group("message") and len(re.findall(r"[A-Za-z]+", match.group())) >= MESSAGE_WORDS
        ):
            yield Passage("messages", match.group()[1:-1], line)
    if run:
        yield comment(run, run_line)


def test_names(text: str) -> Iterator[Passage]:
    for match in TEST_NAME.finditer(text):
        line = text.count("\n", 0, match.start("name")) + 1
        yield Passage("comments", match.group("name").replace("_", " ").capitalize(), line)


def comment(lines: list[str], line: int) -> Passage:
    text = "\n".join(COMMENT_MARKS.sub("", part) for part in lines)
    return Passage("comments", text, line)


def passages_of_markdown(text: str) -> Iterator[Passage]:
    """Paragraphs, list items and cells; fenced blocks are left out."""
    fence = ""
    paragraph: list[str] = []
    first = 0
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
            line = ""
        elif fence:
            line = ""
        begins = not line.strip() or re.match(r"\s*([-*+]|\d+\.|#+|\|)\s", line)
        if begins and paragraph:
            yield Passage("documents", "\n".join(paragraph), first)
            paragraph = []
        if line.strip():
            if not paragraph:
                first = number
            paragraph.append(re.sub(r"^\s*([-*+]|\d+\.|#+|\|)\s+|^\s*>\s?", "", line))


def passages(path: Path, text: str) -> Iterator[Passage]:
    if path.suffix == ".md":
        yield from passages_of_markdown(text)
        return
    tokens = LANGUAGES.get(path.suffix) or LANGUAGES.get(path.name)
    if tokens is None and re.match(r"#!.*\b(sh|bash|python3)\b", text):
        tokens = HASH_TOKENS
    if tokens is not None:
        yield from passages_of_source(text, tokens)
    if path.suffix == ".rs":
        yield from test_names(text)


def check(path: str, text: str, rules: Rules) -> Iterator[Finding]:
    if any(fnmatch.fnmatch(path, pattern) for pattern in rules.skipped):
        return
    if path.endswith(".md"):
        yield from check_columns(path, text, rules)
    excepted = [e.words for e in rules.exceptions if fnmatch.fnmatch(path, e.path)]
    for passage in passages(Path(path), text):
        prose = CODE.sub(blank, passage.text)
        for word in rules.words:
            if passage.kind not in word.kinds:
                continue
            for match in word.avoid.finditer(prose):
                if any(words.fullmatch(match.group()) for words in excepted):
                    continue
                where = passage.line + prose.count("\n", 0, match.start())
                found = " ".join(match.group().split())
                yield Finding(path, where, f"“{found}”: write {word.write}")
        if passage.kind == "messages":
            continue
        for match in rules.starts.finditer(prose):
            if not match.group(1).endswith("?"):
                where = passage.line + prose.count("\n", 0, match.start(1))
                opening = " ".join(match.group(1).split()[:4])
                yield Finding(path, where, f"“{opening} ...”: name the subject of the sentence")


def check_columns(path: str, text: str, rules: Rules) -> Iterator[Finding]:
    fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        if re.match(r"\s*```", line):
            fenced = not fenced
        breakable = not fenced and not line.startswith("|") and len(line.split()) > 1
        if breakable and len(line) > rules.columns:
            yield Finding(path, number, f"{len(line)} columns: {rules.columns} are allowed")


def files(arguments: list[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted({path for path in listed.stdout.split("\0") if path and Path(path).is_file()})


def main(arguments: list[str]) -> int:
    if any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    rules = read_rules()
    areas: Counter[str] = Counter()
    for path in files(arguments):
        try:
            text = Path(path).read_text()
        except UnicodeDecodeError:
            continue
        for finding in check(path, text, rules):
            print(finding)
            areas["/".join(path.split("/")[:2])] += 1
    if not areas:
        return 0
    by_area = ", ".join(f"{area} {count}" for area, count in areas.most_common())
    print(f"prose: {areas.total()} findings: {by_area}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
