# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tables of documents that are made from the lists in locks/. See "Documents" in CONTRIBUTING.md.

A document has such a table between the lines `<!-- generated: locks/registry/LIST.h -->` and
`<!-- end -->`. The columns depend on the macro of the list.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

BLOCK = re.compile(r"(<!-- generated: (\S+) -->\n)(.*?)(<!-- end -->\n|\Z)", re.DOTALL)
LOCKS = Path(__file__).parents[2] / "locks"
LIMITS = {"UINT32_MAX": "2^32 - 1", "LW_TUNABLE_MAX": "2^63 - 1"}


class GeneratedError(Exception):
    """A block cannot be generated; `line` is that of its beginning."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def update(text: str) -> str:
    """The document with its blocks as the lists are now."""

    def block(match: re.Match[str]) -> str:
        line = text.count("\n", 0, match.start()) + 1
        if not match[4]:
            raise GeneratedError(line, "the block has no <!-- end -->")
        if not Path(match[2]).exists():
            raise GeneratedError(line, f"{match[2]}: there is no such list")
        return match[1] + table(Path(match[2])) + match[4]

    return BLOCK.sub(block, text)


def table(path: Path) -> str:
    calls = list(macro_calls(path))
    header, row = TABLES[calls[0][0]]
    rows = [header, ["--"] * len(header), *(row(macro, *arguments) for macro, arguments in calls)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def macro_calls(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The macro and the arguments of each entry of a list, and of the lists that it includes."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    for match in re.finditer(r'^#include "([^"]+)"$|^LW_(\w+)\((.*?)\)$', text, re.M | re.DOTALL):
        if match[1]:
            (included,) = LOCKS.rglob(match[1])
            yield from macro_calls(included)
        else:
            names, quote, strings = match[3].partition('"')
            arguments = [name.strip() for name in names.split(",") if name.strip()]
            yield match[2], arguments + ([literal(quote + strings)] if quote else [])


def literal(strings: str) -> str:
    return "".join(re.findall(r'"([^"]*)"', strings))


def event(macro: str, name: str, meaning: str) -> list[str]:
    return [f"`{name}`", meaning + ("; not a sum" if macro == "MAXIMUM" else "")]


def tunable(_macro: str, name: str, *rest: str) -> list[str]:
    *values, _checked, meaning = rest
    return [f"`{name}`", *(LIMITS.get(value, value) for value in values), meaning]


@cache
def descriptions() -> dict[str, str]:
    """The text of LW_DESCRIBE() of each lock."""
    calls = re.compile(r"^LW_DESCRIBE\w*\(\s*(\w+),(.*?)\);$", re.M | re.DOTALL)
    sources = sorted(LOCKS.rglob("*.c"))
    return {match[1]: match[2] for path in sources for match in calls.finditer(path.read_text())}


def lock(_macro: str, name: str) -> list[str]:
    text = descriptions()[name]
    traits = set(re.findall(r"LW_\w+", text.partition(".traits =")[2].partition(".")[0]))
    orders = {"LW_BROKEN": "none", "LW_NUMA_AWARE": "NUMA-aware", "LW_FIFO": "FIFO"}
    order = next((order for trait, order in orders.items() if trait in traits), "unfair")
    waiting = "none" if "LW_BROKEN" in traits else "spins" if "LW_SPINS" in traits else "parks"
    summary = re.search(r'\.summary =((?:\s*"[^"]*")+)', text)
    assert summary, name
    return [f"`{name}`", order, waiting, literal(summary[1])]


Row = Callable[..., list[str]]
TABLES: dict[str, tuple[list[str], Row]] = {
    "EVENT": (["event", "meaning"], event),
    "TUNABLE": (["tunable", "default", "in kernels", "up to", "meaning"], tunable),
    "LOCK": (["lock", "order", "waiting", "what it is"], lock),
}
