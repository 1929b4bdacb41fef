# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Pages of `lockworks report` in a real browser, Chromium."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

LOCKWORKS = Path(__file__).parents[2] / "target/debug/lockworks"
BEGIN = '<script id="data" type="application/json">'
# A figure of the kind that only a page about this machine has, which takes a minute to make.
PAIRS = {
    "id": "validated",
    "title": "Prediction beside measurement",
    "text": "A test.",
    "command": "lockworks machines validate",
    "chart": {
        "kind": "pairs",
        "unit": "operations a second",
        "series": [
            {"name": "mutex", "points": [[2e7, 3e7, 1, 0], [1e7, 1e7, 2, 0]]},
            {"name": "a <b>lock</b>", "points": [[5e2, 4e2, 8, 0]]},
        ],
    },
    "columns": ["lock", "measured"],
    "rows": [["mutex", 2e7], ["a <b>lock</b>", 5e2], ["mutex", None]],
}


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page about a machine and one about a program."""
    directory = tmp_path_factory.mktemp("report")
    machine, program = directory / "machine.html", directory / "program.html"
    small = (Path(__file__).parent / "small.toml").read_text()
    ten_cpus = directory / "ten.toml"
    ten_cpus.write_text(small.replace('"core", count = 2', '"core", count = 5'))
    options = ["--quick", "--machine", ten_cpus]
    subprocess.run([LOCKWORKS, "report", *options, "-o", machine], check=True)
    command = ["--", "python3", "-c", "import threading"]
    subprocess.run([LOCKWORKS, "report", "-o", program, *command], check=True)
    before, after = machine.read_text().split(BEGIN)
    data, after = after.split("</script>", 1)
    contents = json.loads(data)
    contents["figures"].append(PAIRS)
    text = json.dumps(contents).replace("</", "<\\/")
    machine.write_text(f"{before}{BEGIN}{text}</script>{after}")
    return {"machine": machine, "program": program}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        yield browser
        browser.close()


def show(browser: Browser, page: Path, width: int, scheme: str) -> tuple[Page, list[str]]:
    """The page in a window, and what it reports as wrong, which is collected later too."""
    assert scheme in ("light", "dark")
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        offline=True,
    )
    shown = context.new_page()
    wrong: list[str] = []
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on("console", lambda message: wrong.append(message.text))
    shown.on("request", lambda request: wrong.append(request.url))
    shown.goto(page.as_uri())
    wrong[:] = [one for one in wrong if one != page.as_uri()]
    return shown, wrong


@pytest.mark.parametrize("name", ["machine", "program"])
@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (1100, "dark"), (400, "light")])
def test_every_figure_is_drawn_and_fits(
    browser: Browser, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    """No error, a drawing in every chart, no sideways scrolling, nothing that axe objects to."""
    page, wrong = show(browser, pages[name], width, scheme)
    charts = page.locator(".chart")
    drawn = [page.locator(f"#{figure} .chart").count() for figure in ("throughput", "fairness")]
    if name == "machine":
        assert charts.count() == 4
    else:
        assert page.locator("#compare .chart").count() == 1
        assert page.locator("#plan").count() == 1
        # A replay that is not to be believed has no charts, and says so.
        assert (drawn, page.locator("#replay").count()) in (([1, 1], 0), ([0, 0], 1))
    for at in range(charts.count()):
        assert charts.nth(at).locator("svg path").count() > 5
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("#what").inner_text() and page.title().startswith("Which lock ")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert wrong == []
    page.context.close()


def test_tables_sort_and_download(browser: Browser, pages: dict[str, Path]) -> None:
    """By mouse and by keyboard; numbers as numbers, and text is never markup."""
    page, _ = show(browser, pages["machine"], 1100, "light")
    page.locator("#predicted summary").click()
    threads = page.locator("#predicted th button", has_text="threads")
    column = "[...document.querySelectorAll('#predicted td:nth-child(2)')].map(c => +c.textContent)"
    threads.click()
    ascending = page.evaluate(column)
    assert ascending == sorted(ascending) and len(set(ascending)) > 3
    threads.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(column) == sorted(ascending, reverse=True)
    head = page.locator("#predicted th", has_text="threads")
    assert head.get_attribute("aria-sort") == "descending"
    with page.expect_download() as download:
        page.locator("#predicted button", has_text="Download CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0] == "lock,threads,operations a second,lowest,highest"
    assert len(lines) == len(ascending) + 1
    page.locator("#validated summary").click()
    assert page.locator("#validated td b").count() == 0
    assert page.locator("#validated td", has_text="a <b>lock</b>").count() == 1
    page.context.close()


def test_the_heat_map_shows_the_lock_that_is_chosen(
    browser: Browser, pages: dict[str, Path]
) -> None:
    """The answer's lock first, and any other."""
    page, _ = show(browser, pages["machine"], 1100, "light")
    choice = page.locator("#regret select")
    assert choice.input_value() == json.loads(page.locator("#data").inner_text())["answer"]["lock"]
    drawn = page.locator("#regret .chart").inner_html()
    choice.select_option("tas")
    assert page.locator("#regret .chart").inner_html() != drawn
    page.context.close()


def test_a_page_can_be_printed(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    """As a PDF of a few sheets."""
    page, wrong = show(browser, pages["machine"], 1100, "light")
    page.pdf(path=tmp_path / "page.pdf")
    sheets = (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n")
    assert 2 <= sheets <= 9 and wrong == []
    page.context.close()
