// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Draws the figures of the page. Each has its data as a table, and most have a chart, of charts.js.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const [ink, line, paper] = ["--ink", "--line", "--paper"].map((name) => style.getPropertyValue(name));
  return { ink, line, paper };
}

function download(name, type, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

function table(figure) {
  const body = element("tbody");
  let [sorted, ascending] = [-1, true];
  const heads = figure.columns.map((column, at) => {
    const head = element("th", { scope: "col" }, element("button", { type: "button", onclick: () => sort(at) }, column));
    return head;
  });
  function fill(rows) {
    body.replaceChildren(...rows.map((row) => element("tr", {}, ...row.map((cell) =>
      element("td", {}, typeof cell === "number" && Math.abs(cell) >= 1e4 ? Math.round(cell).toLocaleString("en") : typeof cell === "number" ? String(+cell.toPrecision(4)) : short(cell))))));
  }
  function sort(at) {
    ascending = sorted === at ? !ascending : true;
    sorted = at;
    const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    fill([...figure.rows].sort((a, b) => (ascending ? 1 : -1) * order(a[at], b[at])));
    heads.forEach((head, i) => (i === at ? head.setAttribute("aria-sort", ascending ? "ascending" : "descending") : head.removeAttribute("aria-sort")));
  }
  fill(figure.rows);
  return element("table", {}, element("caption", { className: "text" }, figure.title), element("thead", {}, element("tr", {}, ...heads)), body);
}

function csv(figure) {
  const quoted = (cell) => (cell === null ? "" : /[",\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell);
  return [figure.columns, ...figure.rows].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
}

/** Text, with what stands between backticks as code. */
function withCode(text) {
  return text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));
}

const drawn = [];

function section(figure) {
  const made = element("section", { id: figure.id }, element("h2", {}, figure.title), element("p", { className: "text" }, ...withCode(figure.text)));
  if (figure.chart) {
    const box = element("div", { className: "chart" });
    if (figure.chart.kind === "heat") box.style.height = `${130 + 28 * figure.chart.rows.length}px`;
    if (figure.chart.bars) box.style.height = `${70 + 34 * figure.chart.bars.length}px`;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${figure.title}. The table below has the data.`);
    let choice = page.answer.lock;
    const draw = () => {
      const chart = echarts.getInstanceByDom(box) || echarts.init(box, null, { renderer: "svg" });
      chart.resize();
      const wide = box.clientWidth > 620;
      chart.setOption(DRAW[figure.chart.kind](figure.chart, { wide, chosen: choice, ...colours() }), true);
      if (wide && figure.chart.kind === "lines") nameLines(chart, figure.chart);
    };
    if (figure.chart.kind === "heat") {
      const select = element("select", { onchange: () => { choice = select.value; draw(); } },
        ...figure.chart.panels.map((panel) => element("option", { value: panel.name, selected: panel.name === choice }, panel.name)));
      made.append(element("label", {}, "Lock: ", select));
    }
    made.append(box);
    drawn.push(draw);
  }
  const data = element("div", { className: "scroll", tabIndex: 0 }, table(figure));
  data.setAttribute("role", "region");
  data.setAttribute("aria-label", `Data: ${figure.title}`);
  made.append(
    element("details", { open: !figure.chart }, element("summary", {}, `Data (${figure.rows.length} rows)`), data,
      element("button", { type: "button", onclick: () => download(`${figure.id}.csv`, "text/csv", csv(figure)) }, "Download CSV")),
    element("p", {}, "Made by ", element("code", {}, figure.command)));
  return made;
}

document.title = page.answer.title;
document.getElementById("title").textContent = page.answer.title;
for (const [name, text] of [["what", page.answer.what], ["sure", page.answer.how_sure]]) {
  const place = document.getElementById(name);
  place.append(...withCode(text));
  place.hidden = !text;
}
document.getElementById("footer").textContent = `Lockworks ${page.version}, ${new Date(1000 * page.made).toISOString().slice(0, 10)}. Figures called predicted or simulated come from the simulator, all others from this machine.`;
if (page.answer.failures.length) {
  const list = element("ul", {}, ...page.answer.failures.map((failure) => element("li", {}, failure)));
  document.getElementById("failures").append(element("div", { className: "failures" }, element("p", {}, "Parts of this page failed:"), list));
}
document.getElementById("contents").append(...page.figures.map((figure) => element("li", {}, element("a", { href: `#${figure.id}` }, figure.title))));
document.getElementById("figures").append(...page.figures.map(section));
const draw = () => drawn.forEach((one) => one());
draw();
dark.addEventListener("change", draw);
window.addEventListener("resize", draw);
window.addEventListener("beforeprint", draw);
