// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Draws the figures of the page. Each has a chart by ECharts, and its data as a table.
"use strict";

// Colours that colour-blind people can tell apart (Okabe and Ito). A lock has the same in every figure.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07d00", "#3a9bd1", "#7f7f7f", "#8c564b"];
const LOCKS = ["mutex", "pthread_mutex", "cna", "hq", "pv", "qspinlock", "tas", "unfair"];
const SYMBOLS = ["circle", "rect", "triangle", "diamond", "pin", "arrow", "roundRect", "emptyCircle"];
const ALIASES = { glibc: "pthread_mutex", futex: "pthread_mutex", stock: "qspinlock" };

const page = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function look(name, others) {
  const lock = name.split(",")[0];
  let at = LOCKS.indexOf(ALIASES[lock] || lock);
  if (at < 0) at = LOCKS.length + [...new Set(others.map((other) => other.split(",")[0]))].indexOf(lock);
  const again = Math.floor(at / COLOURS.length);
  return { colour: COLOURS[at % COLOURS.length], symbol: SYMBOLS[(at + again) % SYMBOLS.length] };
}

function short(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (size >= limit) return +(value / (limit === 1e4 ? 1e3 : limit)).toPrecision(3) + unit;
  return String(+value.toPrecision(3));
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function ink() {
  const style = getComputedStyle(document.documentElement);
  return { ink: style.getPropertyValue("--ink"), line: style.getPropertyValue("--line") };
}

function axis(type, name, more) {
  const { ink: colour, line } = ink();
  return Object.assign({
    type, name, nameLocation: "middle", nameGap: type === "category" ? 26 : 34,
    axisLabel: { color: colour, formatter: short, hideOverlap: true }, nameTextStyle: { color: colour },
    axisLine: { lineStyle: { color: colour } }, splitLine: { lineStyle: { color: line } },
  }, more);
}

// Whiskers from the lowest to the highest of [x, low, high].
function whiskers(name, colour, points) {
  return {
    name, type: "custom", silent: true, tooltip: { show: false }, data: points, z: 1,
    renderItem: (parameters, api) => {
      const [low, high] = [api.coord([api.value(0), api.value(1)]), api.coord([api.value(0), api.value(2)])];
      return { type: "line", shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] }, style: { stroke: colour, lineWidth: 3, opacity: .45 } };
    },
  };
}

const base = () => ({
  animation: false, aria: { enabled: true }, textStyle: { color: ink().ink },
  tooltip: { trigger: "item", confine: true },
});

function lines(chart, wide) {
  const names = chart.series.map((one) => one.name);
  const threads = [...new Set(chart.series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
  const series = chart.series.flatMap((one) => {
    const { colour, symbol } = look(one.name, names);
    const simulated = one.name.endsWith("simulated");
    const at = (point) => String(point[0]);
    const spread = one.points.filter((point) => point[2] < point[3]).map((point) => [at(point), Math.max(point[2], 1e-9), point[3]]);
    const line = {
      name: one.name, type: "line", symbol, symbolSize: 8, data: one.points.map((point) => [at(point), point[1]]),
      color: colour, lineStyle: { width: 2, type: simulated ? "dashed" : "solid" }, emphasis: { focus: "series" },
    };
    return spread.length ? [line, whiskers(one.name, colour, spread)] : [line];
  });
  const values = chart.series.flatMap((one) => one.points.map((point) => point[1]));
  const log = chart.log && Math.max(...values) > 8 * Math.min(...values);
  return Object.assign(base(), {
    legend: { show: !wide, type: "scroll", textStyle: { color: ink().ink } },
    grid: { left: 62, right: wide ? 170 : 16, top: wide ? 24 : 60, bottom: 46 },
    xAxis: axis("category", "threads", { data: threads.map(String), boundaryGap: wide ? false : true }),
    yAxis: axis(log ? "log" : "value", chart.y, { nameGap: 46, scale: !log && Math.min(...values) > 0 }),
    tooltip: { trigger: "item", confine: true, valueFormatter: short }, series,
  });
}

// Names the lines at their ends, where no two names overlap.
function nameLines(drawn, chart) {
  const names = chart.series.map((one) => one.name);
  const ends = chart.series.map((one) => {
    const [threads, value] = one.points[one.points.length - 1];
    const [x, y] = drawn.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, [String(threads), value]);
    return { name: one.name, x, y };
  }).sort((a, b) => a.y - b.y);
  const gap = 14;
  for (let i = 1; i < ends.length; i++) ends[i].y = Math.max(ends[i].y, ends[i - 1].y + gap);
  const over = ends.length ? ends[ends.length - 1].y - (drawn.getHeight() - 40) : 0;
  for (let i = ends.length - 1; over > 0 && i >= 0; i--) ends[i].y = Math.min(ends[i].y, drawn.getHeight() - 40 - gap * (ends.length - 1 - i));
  drawn.setOption({ graphic: ends.map(({ name, x, y }) => (
    { type: "text", x: x + 10, y: y - 6, style: { text: name, fill: look(name, names).colour, font: "12px sans-serif" } })) });
}

function pairs(chart, wide) {
  const names = chart.series.map((one) => one.name);
  const all = chart.series.flatMap((one) => one.points.flatMap((point) => point.slice(0, 2)));
  const [least, most] = [Math.min(...all) / 1.3, Math.max(...all) * 1.3];
  const number = axis("log", "", { min: least, max: most });
  const series = chart.series.map((one) => {
    const { colour, symbol } = look(one.name, names);
    return { name: one.name, type: "scatter", symbol, symbolSize: 11, color: colour, data: one.points.map((point) => point.slice(0, 3)) };
  });
  series.push({ type: "line", silent: true, symbol: "none", data: [[least, least], [most, most]], lineStyle: { color: ink().ink, type: "dotted" }, tooltip: { show: false } });
  return Object.assign(base(), {
    legend: { type: "scroll", data: names, textStyle: { color: ink().ink } }, grid: { left: 62, right: 24, top: 60, bottom: 46 },
    xAxis: Object.assign({}, number, { name: "measured, " + chart.unit }),
    yAxis: Object.assign({}, number, { name: "predicted", nameGap: 46 }),
    tooltip: { confine: true, formatter: (at) => `${at.seriesName}, ${at.value[2]} threads<br>measured ${short(at.value[0])}, predicted ${short(at.value[1])}` },
    series,
  });
}

function heat(chart, wide, chosen) {
  const panel = chart.panels.find((one) => one.name === chosen) || chart.panels[0];
  return Object.assign(base(), {
    grid: { left: wide ? 210 : 110, right: 16, top: 16, bottom: 110 },
    xAxis: axis("category", "threads", { data: chart.columns, axisLabel: { color: ink().ink, rotate: 45 }, nameGap: 52 }),
    yAxis: axis("category", "", { data: chart.rows, inverse: true, axisLabel: { color: ink().ink, width: wide ? 200 : 100, overflow: "truncate" } }),
    visualMap: { min: 0, max: 1, precision: 2, calculable: true, orient: "horizontal", left: "center", bottom: 0, text: ["the best", "0"],
      textStyle: { color: ink().ink }, inRange: { color: ["#3c0028", "#961428", "#e15a28", "#fabe5a", "#fceebe", "#e8f3fa"] } },
    tooltip: { confine: true, formatter: (at) => `${panel.name}, ${chart.rows[at.value[1]]}, ${chart.columns[at.value[0]]} threads: ${at.value[2].toFixed(2)} of the best` },
    series: [{ type: "heatmap", name: panel.name, data: panel.cells.map(([x, y, share]) => ({ value: [x, y, share], label: { color: share < .6 ? "#ffffff" : "#1d1d1f" } })),
      label: { show: wide && chart.columns.length < 16, formatter: (at) => at.value[2].toFixed(2) } }],
  });
}

function intervals(chart) {
  const names = chart.bars.map((bar) => bar.name);
  const colour = (name) => look(name, names).colour;
  return Object.assign(base(), {
    grid: { left: 100, right: 30, top: 16, bottom: 46 },
    xAxis: axis("value", chart.unit, { scale: true }),
    yAxis: axis("category", "", { data: names, inverse: true }),
    series: [
      { type: "custom", silent: true, data: chart.bars.map((bar, at) => [at, bar.low, bar.high]), tooltip: { show: false },
        renderItem: (parameters, api) => {
          const [low, high] = [api.coord([api.value(1), api.value(0)]), api.coord([api.value(2), api.value(0)])];
          return { type: "line", shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] }, style: { stroke: colour(names[api.value(0)]), lineWidth: 6, opacity: .5 } };
        } },
      { type: "scatter", symbolSize: 12, data: chart.bars.map((bar, at) => ({ value: [bar.middle, at], itemStyle: { color: colour(bar.name) } })),
        markLine: { silent: true, symbol: "none", data: [{ xAxis: 1 }], lineStyle: { color: ink().ink, type: "dotted" }, label: { show: false } } },
    ],
  });
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

const DRAW = { lines, pairs, heat, intervals };
const drawn = [];

function section(figure) {
  const made = element("section", { id: figure.id }, element("h2", {}, figure.title), element("p", { className: "text" }, figure.text));
  if (figure.chart) {
    const box = element("div", { className: "chart" });
    if (figure.chart.kind === "heat") box.style.height = `${130 + 28 * figure.chart.rows.length}px`;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${figure.title}. The table below has the data.`);
    let choice = page.answer.lock;
    const draw = () => {
      const chart = echarts.getInstanceByDom(box) || echarts.init(box, null, { renderer: "svg" });
      chart.resize();
      const wide = box.clientWidth > 620;
      chart.setOption(DRAW[figure.chart.kind](figure.chart, wide, choice), true);
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
document.getElementById("what").textContent = page.answer.what;
document.getElementById("sure").textContent = page.answer.how_sure;
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
