#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Write the archive of the C library into OUT: its sources in one file, its public headers in
another, and the files of packaging/c, by which build tools build it. Beside it, and in it, is its
bill of materials (CycloneDX). The archive depends on the sources only, to the byte.

The recipes for vcpkg and Conan name it: at URL, or on this machine if URL is empty.

usage: dist-c.py OUT VERSION URL -IDIRECTORY... SOURCE...
"""

import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path

LICENSE = "BSD-2-Clause OR GPL-2.0-only"
HEAD = f"""\
/* SPDX-License-Identifier: {LICENSE} */
/* Made from the files of Lockworks %s that are named below, each with its comments. Do not edit. */
"""
FIRST = """\
#define _GNU_SOURCE
#include "lockworks/lockworks.h"
"""
EXAMPLES = ["CMakeLists.txt", "c/latencies.c", "cpp/queue.cpp"]
RECIPES = [
    "packaging/vcpkg/vcpkg.json",
    "packaging/vcpkg/portfile.cmake",
    "packaging/conan/conandata.yml",
    "packaging/conan/conanfile.py",
    "packaging/conan/test_package/conanfile.py",
]


class Amalgamation:
    """The text of files, in which an included file is in place of the line that includes it."""

    def __init__(self, directories: list[Path]) -> None:
        self.directories = directories
        self.seen: set[Path] = set()

    def text(self, path: Path) -> str:
        content = path.read_text()
        if re.search(r"^#ifndef (\w+)\n#define \1$", content, re.MULTILINE):
            self.seen.add(path)
        content = re.sub(
            r"^(//|/\*) SPDX-License-.*\n|^#define _GNU_SOURCE\n", "", content, flags=re.MULTILINE
        )
        content = "".join(
            self.line(line, path.parent) for line in content.splitlines(keepends=True)
        )
        return f"/* {path} */\n{content}"

    def line(self, text: str, parent: Path) -> str:
        if include := re.match(r'#include ["<]([^">]+)[">]', text):
            for directory in [parent, *self.directories]:
                path = directory / include[1]
                if path in self.seen:
                    return ""
                if path.exists():
                    return self.text(path)
        return text  # also a header that is of the system, or of tools only


def bill(version: str) -> str:
    purl = f"pkg:generic/lockworks-c@{version}"
    component = {
        "type": "library",
        "bom-ref": purl,
        "name": "lockworks-c",
        "version": version,
        "purl": purl,
    }
    return json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": component | {"licenses": [{"expression": LICENSE}]}},
            "components": [],  # it needs the C library of the system, and nothing else
            "dependencies": [{"ref": purl, "dependsOn": []}],
        },
        indent=2,
    )


def filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text.replace("URL: \n", "")


def main() -> None:
    out, version, url = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    directories = [Path(argument[2:]) for argument in sys.argv[4:] if argument.startswith("-I")]
    sources = sorted(Path(argument) for argument in sys.argv[4:] if not argument.startswith("-I"))
    name = f"lockworks-c-{version}"

    amalgamation = Amalgamation(directories)
    public = Path("lib/include/lockworks")
    header = amalgamation.text(public / "lockworks.h")
    code = "".join(amalgamation.text(source) for source in sources)
    files = {
        "lockworks/lockworks.h": HEAD % version + header,
        "lockworks.c": HEAD % version + FIRST + code,
        f"{name}.cdx.json": bill(version) + "\n",
    }
    for path in [public / "lockworks.hpp", public / "thread_safety.h"]:
        files[f"lockworks/{path.name}"] = path.read_text()
    for path in [
        *Path("packaging/c").iterdir(),
        *Path("lib").glob("lockworks*.*"),
        Path("LICENSE"),
    ]:
        files[path.name] = path.read_text()
    for licence in re.findall(r"LICENSES/\S+\.txt", files["LICENSE"]):
        files[licence] = Path(licence).read_text()
    values = {"version": version, "url": url, "compatible": version.rpartition(".")[0] + ".0"}
    values |= {"annotation": "", "sanitizer": ""}
    files = {path: filled(content, values) for path, content in files.items()}

    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.cdx.json").write_text(files[f"{name}.cdx.json"])
    with (
        gzip.GzipFile(
            filename="", mode="wb", fileobj=(out / f"{name}.tar.gz").open("wb"), mtime=0
        ) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path_in_archive in sorted(files):
            data = files[path_in_archive].encode()
            entry = tarfile.TarInfo(f"{name}/{path_in_archive}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    packed_bytes = (out / f"{name}.tar.gz").read_bytes()
    values["archive"] = f"{url}/releases/download/v{version}/{name}.tar.gz"
    if not url:
        values["archive"] = (out / f"{name}.tar.gz").resolve().as_uri()
    for algorithm in ["sha256", "sha512"]:
        values[algorithm] = hashlib.new(algorithm, packed_bytes).hexdigest()
    examples = {f"conan/test_package/{path}": Path("examples") / path for path in EXAMPLES}
    recipes = {str(path.relative_to("packaging")): path for path in map(Path, RECIPES)}
    for recipe, path in (examples | recipes).items():
        (out / recipe).parent.mkdir(parents=True, exist_ok=True)
        (out / recipe).write_text(filled(path.read_text(), values))
    print(out / f"{name}.tar.gz")


if __name__ == "__main__":
    main()
