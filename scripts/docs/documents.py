#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run what the documents say: commands, programs, links. See "Documents" in CONTRIBUTING.md.

Usage: documents.py [--links | --tutorials | --write] [DOCUMENT]...
    Without documents, all that git knows.
    --links checks annotations, links and generated tables only, and runs nothing.
    --tutorials runs the documents that have a copy of the repository, in place of the others.
    --write writes the generated tables (generated.py), and checks nothing.

The word behind a fence's language says what is done with the block:

    ```sh run [status=N] [limit=S]    run by bash in a directory that the document's blocks share
    ```sh norun: REASON           not run; the options of its `lockworks` commands are checked
    ```text output                what the block before it printed; see expected()
    ```text exact                 the same, figures included
    ```c program=NAME             compiled against the staged library, without a warning, and run
    ```c fragment                 compiled as the body of a function
    ```LANGUAGE file=PATH         written to PATH in the document's directory

`toml` and `json` without more must parse; `text` and `mermaid` are pictures. Every other fence
needs an annotation. A tutorial, a document with the line
`<!-- documents: checkout -->`, has a copy of the repository as its directory, which keeps what is
built there for the next run.
The environment: LOCKWORKS is the command, STAGE where the library is staged.
"""

import filecmp
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import generated
from markdown_it import MarkdownIt
from markdown_it.token import Token

LIMIT_SECONDS = 120
CHECKOUT_MARK = "<!-- documents: checkout -->"
# A copy of the repository, and the directory in which it is built.
CHECKOUT = Path("build/docs/checkout")
CHECKOUT_TARGET = Path("target/docs")
PICTURES = ("text", "mermaid")
PARSERS: dict[str, Callable[[str], object]] = {"toml": tomllib.loads, "json": json.loads}
COMPILERS = {
    "c": ("CC", "cc", "-std=gnu17"),
    "cpp": ("CXX", "c++", "-std=c++17"),
}
PKG_CONFIG = ["pkg-config", "--cflags", "--libs", "lockworks"]
FRAGMENT = """#include <lockworks/lockworks.h>
void fragment(void);
void fragment(void)
{{
{}}}
"""
# A path of the repository in inline code. NAME and the like stand for any.
PATH = re.compile(
    r"(?:locks|worlds|lib|interpose|clients|crates|machines|experiments|examples|tests|scripts|docs)"
    r"/(?!\S*[A-Z]{3})[\w./+-]*"
)
FIGURE = r"[+-]?\d[\d,]*(?:\.\d+)?"


@dataclass(eq=False)
class DocumentError(Exception):
    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    annotation: str
    text: str

    def value(self, key: str) -> str | None:
        match = re.search(rf"(?:^|\s){key}=(\S+)", self.annotation)
        return match.group(1) if match else None

    def has(self, word: str) -> bool:
        return word in self.annotation.split()


@dataclass
class Document:
    path: Path
    blocks: list[Block] = field(default_factory=list)
    commands: list[tuple[int, str]] = field(default_factory=list)
    paths: list[tuple[int, str]] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    in_checkout: bool = False


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def read(path: Path) -> Document:
    document = Document(path)
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text())
    line = 1
    for number, token in enumerate(tokens):
        line = token.map[0] + 1 if token.map else line
        if token.type == "fence":
            language, _, annotation = token.info.strip().partition(" ")
            block = Block(line, language, annotation.strip(), token.content)
            document.blocks.append(block)
            if language == "sh" and annotation.startswith("norun:"):
                document.commands.append((line + 1, token.content))
        elif token.type == "html_block" and token.content.strip() == CHECKOUT_MARK:
            document.in_checkout = True
        elif token.type == "inline":
            if tokens[number - 1].type == "heading_open":
                document.anchors.add(anchor(plain(token)))
            read_inline(document, token, line)
    return document


def plain(token: Token) -> str:
    return "".join(t.content for t in token.children or [] if t.type in ("text", "code_inline"))


def read_inline(document: Document, token: Token, line: int) -> None:
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            line += 1
        elif child.type == "code_inline" and child.content.startswith("lockworks "):
            document.commands.append((line, child.content))
        elif child.type == "code_inline" and PATH.fullmatch(child.content):
            document.paths.append((line, child.content))
        elif child.type == "link_open":
            document.links.append((line, str(child.attrs["href"])))
        elif child.type == "image":
            document.links.append((line, str(child.attrs["src"])))


def check_links(document: Document) -> Iterator[DocumentError]:
    for line, link in document.links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = link.partition("#")
        target = (document.path.parent / name).resolve() if name else document.path.resolve()
        if not target.exists():
            yield DocumentError(document.path, line, f"{link}: there is no such file")
        elif fragment and target.suffix == ".md" and fragment not in read(target).anchors:
            yield DocumentError(
                document.path, line, f"{link}: {target.name} has no heading #{fragment}"
            )


def check_paths(document: Document) -> Iterator[DocumentError]:
    written = {block.value("file") for block in document.blocks}
    for line, path in document.paths:
        if path not in written and not Path(path).exists():
            yield DocumentError(document.path, line, f"{path}: there is no such file or directory")


def check_generated(document: Document) -> Iterator[DocumentError]:
    text = document.path.read_text()
    try:
        updated = generated.update(text)
    except generated.GeneratedError as error:
        yield DocumentError(document.path, error.line, str(error))
        return
    pairs = zip(text.split("\n"), updated.split("\n"), strict=False)
    for line, (now, wanted) in enumerate(pairs, start=1):
        if now != wanted:
            yield DocumentError(document.path, line, f"not as in its list: make tables\n{wanted}")
            return


def check_annotations(document: Document) -> Iterator[DocumentError]:
    previous: Block | None = None
    for block in document.blocks:
        word = block.annotation
        runs = block.language == "sh" and block.has("run") and not word.startswith("norun:")
        prints = block.language == "text" and (block.has("output") or block.has("exact"))
        if word.startswith("norun:"):
            if not word.removeprefix("norun:").strip():
                yield DocumentError(document.path, block.line, "norun: the reason is missing")
        elif prints:
            if previous is None or not (previous.has("run") or previous.value("program")):
                yield DocumentError(document.path, block.line, "output of no block before it")
        elif not (
            runs
            or block.value("file")
            or (block.language in COMPILERS and (block.value("program") or block.has("fragment")))
            or (block.language in (*PICTURES, *PARSERS) and not word)
        ):
            shown = f"{block.language} {word}".strip() or "no language"
            yield DocumentError(
                document.path, block.line, f"{shown}: not an annotation; see --help"
            )
        elif not word and block.language in PARSERS:
            try:
                PARSERS[block.language](block.text)
            except ValueError as error:
                yield DocumentError(document.path, block.line, f"{block.language}: {error}")
        previous = block


class Runner:
    def __init__(self, command: Path, stage: Path) -> None:
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCKWORKS")}
        self.environment |= {
            "PATH": f"{command.parent}:{self.environment['PATH']}",
            "LD_LIBRARY_PATH": f"{stage}/lib",
            "PKG_CONFIG_PATH": f"{stage}/lib/pkgconfig",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "SOURCE": str(Path.cwd()),
        }

    def run_document(self, document: Document) -> list[DocumentError]:
        began = time.monotonic()
        failures = list(self.failures_of(document))
        print(f"document {document.path}: {time.monotonic() - began:.1f} s", flush=True)
        return failures

    def failures_of(self, document: Document) -> Iterator[DocumentError]:
        for line, text in document.commands:
            for offset, command in lockworks_commands(text):
                if error := self.reject(command):
                    yield DocumentError(document.path, line + offset, error)
        if document.in_checkout:
            yield from self.run_blocks(document, copy_repository())
        else:
            with tempfile.TemporaryDirectory(prefix="lockworks-docs-") as scratch:
                yield from self.run_blocks(document, Path(scratch))

    def run_blocks(self, document: Document, scratch: Path) -> Iterator[DocumentError]:
        printed = ""
        for block in document.blocks:
            try:
                if block.language == "text" and block.annotation:
                    compare(document.path, block, printed)
                else:
                    printed = self.run_block(document.path, block, scratch)
            except DocumentError as failure:
                # Later blocks build on this one.
                yield failure
                return

    def reject(self, command: list[str]) -> str | None:
        """The error message of a `lockworks` command that has options which do not exist."""
        done = self.execute([*command, "--help"], Path.cwd())
        return None if done.returncode == 0 else f"{shlex.join(command)}: {done.stdout.strip()}"

    def execute(
        self, command: list[str], where: Path, limit: int = LIMIT_SECONDS
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=where,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
        )

    def require(
        self, path: Path, block: Block, command: list[str], where: Path, status: int
    ) -> str:
        limit = int(block.value("limit") or LIMIT_SECONDS)
        try:
            done = self.execute(command, where, limit)
        except subprocess.TimeoutExpired:
            raise DocumentError(path, block.line, f"not done after {limit} s") from None
        if done.returncode != status:
            message = (
                f"exit status {done.returncode}, expected {status}; it printed:\n{done.stdout}"
            )
            raise DocumentError(path, block.line, message)
        return done.stdout

    def run_block(self, path: Path, block: Block, scratch: Path) -> str:
        if name := block.value("file"):
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_text(block.text)
        elif block.language == "sh" and block.has("run") and "norun:" not in block.annotation:
            script = f"set -euo pipefail\n{block.text}"
            status = int(block.value("status") or 0)
            return self.require(path, block, ["bash", "-c", script], scratch, status)
        elif block.language in COMPILERS and not block.annotation.startswith("norun:"):
            return self.compile(path, block, scratch)
        return ""

    def compile(self, path: Path, block: Block, scratch: Path) -> str:
        name = block.value("program") or "fragment"
        source = scratch / f"{name}.{block.language}"
        text = block.text
        if name == "fragment":
            text = FRAGMENT.format(text)
        source.write_text(text)
        variable, compiler, standard = COMPILERS[block.language]
        flags = self.require(path, block, PKG_CONFIG, scratch, 0)
        line = [os.environ.get(variable, compiler), standard, "-O2", "-Wall", "-Wextra", "-Werror"]
        line += ["-pthread", source.name, "-o", name, *flags.split()]
        if name == "fragment":
            line += ["-c"]
        self.require(path, block, line, scratch, 0)
        return "" if name == "fragment" else self.require(path, block, [f"./{name}"], scratch, 0)


def lockworks_commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each `lockworks` command of a script, up to what it passes on, and on which line it is."""
    text = re.sub(r"\\\n", lambda _: "\0", text)
    line = 0
    for logical in text.split("\n"):
        lexer = shlex.shlex(logical.replace("\0", " "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("();<>|&"):
                yield from ((line, command) for command in [lockworks_command(words)] if command)
                words = []
            else:
                words.append(word)
        line += 1 + logical.count("\0")


def lockworks_command(words: list[str]) -> list[str]:
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    if not words or Path(words[0]).name != "lockworks" or words[1:2] == ["="]:
        return []
    passed_on = words.index("--") if "--" in words else len(words)
    return ["lockworks", *words[1:passed_on]]


def expected(text: str, exact: bool) -> list[re.Pattern[str]]:
    """A pattern a line. `...` stands for any text, spaces for any spaces, a figure for any figure
    unless `exact`. Lines of ─, ═ and | --- | are left out."""
    patterns = []
    for line in text.splitlines():
        if not re.search(r"[\w.]", line):
            continue
        pattern = ""
        for part in re.split(rf"(\.\.\.|…|\s+|(?<![\w-]){FIGURE})", line.strip()):
            if part in ("...", "…"):
                pattern += ".*"
            elif part.isspace():
                pattern += r"\s+"
            elif not exact and re.fullmatch(FIGURE, part):
                pattern += FIGURE
            else:
                pattern += re.escape(part)
        patterns.append(re.compile(pattern))
    return patterns


def compare(path: Path, block: Block, printed: str) -> None:
    """Each line of the block must be found in what was printed, in order."""
    lines = iter(printed.splitlines())
    wanted = [line for line in block.text.splitlines() if re.search(r"[\w.]", line)]
    for number, pattern in enumerate(expected(block.text, block.has("exact"))):
        if pattern.pattern == ".*":
            continue
        if not any(pattern.search(line) for line in lines):
            where = block.line + 1 + block.text.splitlines().index(wanted[number])
            raise DocumentError(
                path, where, f"not printed: {wanted[number].strip()}\nbut:\n{printed}"
            )


def copy_repository() -> Path:
    """The files as they are here, with their times, so that only what differs is built again."""
    wanted = set(known_to_git())
    for path in wanted:
        copy = CHECKOUT / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            copy.unlink(missing_ok=True)
            copy.symlink_to(path.readlink())
        elif not (copy.exists() and filecmp.cmp(path, copy)):
            shutil.copy2(path, copy)
    for copy in [path for path in CHECKOUT.rglob("*") if path.is_file()]:
        name = copy.relative_to(CHECKOUT)
        if name not in wanted and name.parts[0] not in ("target", "build"):
            copy.unlink()
    target = CHECKOUT / "target"
    if not target.is_symlink():
        CHECKOUT_TARGET.mkdir(parents=True, exist_ok=True)
        target.symlink_to(CHECKOUT_TARGET.resolve())
    return CHECKOUT.resolve()


def known_to_git(*patterns: str) -> list[Path]:
    """Files, and links to files or directories, that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted({p for name in listed.stdout.split("\0") if name and (p := Path(name)).exists()})


def tracked(*patterns: str) -> list[Path]:
    return [path for path in known_to_git(*patterns) if path.is_file()]


def check_mentions() -> Iterator[DocumentError]:
    """Source files name documents that exist."""
    for path in tracked():
        try:
            lines = path.read_text().split("\n")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, start=1):
            for name in re.findall(r"(?<![\w/.])docs/[\w/-]+\.md", line):
                if not Path(name).exists():
                    yield DocumentError(path, number, f"{name}: there is no such document")


def check_operations() -> Iterator[DocumentError]:
    """The page of the operations names each of them."""
    page = Path("docs/reference/operations.md")
    text = page.read_text()
    for source in ("locks/contract/operations.h", "locks/contract/surroundings.h"):
        names = re.findall(r"defined\((lw_\w+)\)", Path(source).read_text())
        for name in dict.fromkeys(names):
            if f"`{name}`" not in text:
                yield DocumentError(page, 1, f"{name} of {source} is not explained")


def check_floors() -> Iterator[DocumentError]:
    """Each crate stands on a floor of the map, above all crates that it depends on."""
    page = Path("ARCHITECTURE.md")
    floors: dict[str, int] = {}
    for text in page.read_text().splitlines():
        if match := re.fullmatch(r"floor (\d+) +([\w ]+)", text):
            floors |= dict.fromkeys(match.group(2).split(), int(match.group(1)))
    for manifest in tracked("crates/*/Cargo.toml"):
        name = manifest.parent.name
        if name not in floors:
            yield DocumentError(page, 1, f"{manifest.parent} stands on no floor")
            continue
        crate = tomllib.loads(manifest.read_text())
        for part in [crate, *crate.get("target", {}).values()]:
            for dependency in [*part.get("dependencies", {}), *part.get("build-dependencies", {})]:
                below = dependency.removeprefix("lockworks-")
                if dependency.startswith("lockworks") and floors.get(below, 0) >= floors[name]:
                    yield DocumentError(manifest, 1, f"{dependency} stands on no lower floor")


def main(arguments: list[str]) -> int:
    only_links = "--links" in arguments
    write = "--write" in arguments
    tutorials = "--tutorials" in arguments
    names = [a for a in arguments if a not in ("--links", "--tutorials", "--write")]
    if any(name.startswith("-") for name in names):
        print(__doc__)
        return 2
    paths = [path for path in tracked(*names) if path.suffix == ".md"]
    if write:
        for path in paths:
            path.write_text(generated.update(path.read_text()))
        return 0
    failures = [
        failure
        for path in paths
        for check in (check_annotations, check_links, check_paths, check_generated)
        for failure in check(read(path))
    ]
    if not names:
        failures += [*check_mentions(), *check_operations(), *check_floors()]
    if not only_links and not failures:
        command = Path(os.environ.get("LOCKWORKS", "target/debug/lockworks")).resolve()
        if not command.exists():
            print(f"{command} is not built: make dev", file=sys.stderr)
            return 2
        runner = Runner(command, Path(os.environ.get("STAGE", "build/stage")).resolve())
        documents = [read(path) for path in paths]
        documents = [document for document in documents if document.in_checkout == tutorials]
        if names and not documents:
            print("nothing to run: make test-tutorials has tutorials, make test-docs the others")
            return 2
        # Tutorials share the copy of the repository.
        workers = 1 if tutorials else os.cpu_count()
        with ThreadPoolExecutor(workers) as pool:
            for failed in pool.map(runner.run_document, documents):
                failures += failed
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
