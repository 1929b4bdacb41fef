# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What MkDocs does not do by itself for the site (mkdocs.yml).

Documents link to files of the repository. Each file outside of docs/ that is linked to has a page
in the site, under source/. The options of the command are a page that is made of its own help.
"""

import os
import re
import subprocess
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Link, Navigation, Section
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from pygments.lexers import find_lexer_class_for_filename

DOCS = Path("docs").resolve()
ROOT = DOCS.parent
COMMAND = os.environ.get("LOCKWORKS", "target/debug/lockworks")
SCRIPTS = Path("build/site-scripts").resolve()
# The target of a link or picture of Markdown, without its fragment.
TARGET = re.compile(r"(?<=\]\()(?!\w+:)([^)\s#]+)(?=(?:#[^)\s]*)?\))")
# References that other tools write into the site.
FURTHER = {"The C API": "api/c/index.html", "The crate for Rust": "api/rust/lockworks/index.html"}


def uri_of(path: Path) -> str:
    """Where a file or directory of the repository is in the site."""
    if path.is_relative_to(DOCS):
        return str(path.relative_to(DOCS))
    return f"source/{path.relative_to(ROOT)}" + ("" if path.suffix == ".md" else ".md")


def linked_from(path: Path, text: str) -> set[Path]:
    targets = ((path.parent / target).resolve() for target in TARGET.findall(text))
    return {target for target in targets if target.exists() and not target.is_relative_to(DOCS)}


def content_of(path: Path) -> str:
    """The page of a file or directory that is not in docs/."""
    if path.suffix == ".md":
        return path.read_text()
    name = path.relative_to(ROOT)
    if path.is_dir():
        listed = subprocess.check_output(["git", "ls-files", name], text=True).splitlines()
        body = "\n".join(f"- [{file}]({os.path.relpath(file, name.parent)})" for file in listed)
    else:
        lexer = find_lexer_class_for_filename(path.name)
        language = lexer.aliases[0] if lexer else "text"
        body = f"~~~~~~{language}\n{path.read_text()}\n~~~~~~"
    return f"---\nsearch: {{ exclude: true }}\n---\n# {name}\n\n{body}\n"


def help_of(words: list[str]) -> str:
    """The help of a subcommand and of those below it, as sections of a page."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    for option in ("--help-all", "--help"):
        done = subprocess.run(
            [COMMAND, *words, option], capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode == 0:
            break
    done.check_returncode()
    level = "#" * (len(words) + 1)
    page = f"{level} {' '.join(['lockworks', *words])}\n\n```text\n{done.stdout}```\n\n"
    commands = re.search(r"^Commands:\n((?:.+\n)+)", done.stdout, re.MULTILINE)
    for name in re.findall(r"^  (\w+)", commands[1] if commands else "", re.MULTILINE):
        if name != "help":
            page += help_of([*words, name])
    return page


def on_files(files: Files, config: MkDocsConfig) -> None:
    def add(uri: str, **content: Any) -> None:
        level = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, uri, inclusion=level, **content))

    wanted = [Path("README.md").resolve()]
    for file in files.documentation_pages():
        wanted += linked_from(DOCS / file.src_uri, file.content_string)
    while wanted:
        path = wanted.pop()
        if not files.get_file_from_path(uri_of(path)):
            add(uri_of(path), content=content_of(path))
            wanted += linked_from(path, content_of(path))
    add("reference/command.md", content=help_of([]))
    add("reference/python.md", content="# The Python package\n\n::: lockworks\n")
    for script in SCRIPTS.glob("*.js"):
        add(f"assets/{script.name}", abs_src_path=str(script))


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    reference = next(item for item in nav.items if item.title == "Reference")
    assert isinstance(reference, Section)
    reference.children += [Link(title, url) for title, url in FURTHER.items()]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    path = ROOT / uri.removeprefix("source/") if uri.startswith("source/") else DOCS / uri

    def target(match: re.Match[str]) -> str:
        linked = (path.parent / match[1]).resolve()
        return relpath(uri_of(linked), dirname(uri)) if linked.exists() else match[1]

    markdown = TARGET.sub(target, markdown)
    # The words behind the language of a fence are for documents.py.
    markdown = re.sub(r"^( *```\w+) .*$", r"\1", markdown, flags=re.MULTILINE)
    # The theme would fetch it from the network.
    if "```mermaid" in markdown:
        script = get_relative_url("assets/mermaid.js", page.url)
        markdown += f'\n\n<script src="{script}"></script>\n'
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    # The search is for words, not for the text of pictures.
    return html.replace('<pre class="mermaid">', '<pre class="mermaid" data-search-exclude>')
