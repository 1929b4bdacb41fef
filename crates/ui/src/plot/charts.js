// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The charts of figures, as options of ECharts. Pages draw them in a browser, and `--plot FILE.svg`
// without one. `place` says where a chart is: whether it is wide, the colours of text and lines, and for
// heat maps the panel and the size of a cell.
"use strict";

// Colours that colour-blind people can tell apart (Okabe and Ito; Tol). These locks have the same colour and
// symbol in every picture. Any other takes the next of OTHERS, so a new lock needs no entry.
const LOOKS = {
  mutex: ["#0072b2", "circle"], pthread_mutex: ["#d55e00", "rect"], cna: ["#009e73", "triangle"], hq: ["#cc79a7", "diamond"],
  pv: ["#b07d00", "emptyTriangle"], qspinlock: ["#3a9bd1", "emptyCircle"], tas: ["#7f7f7f", "roundRect"], unfair: ["#8c564b", "emptyRect"],
  mcs: ["#44aa99", "emptyDiamond"], ticket: ["#882255", "circle"], "pv-mutex": ["#332288", "rect"],
};
const OTHERS = [["#999933", "triangle"], ["#aa4499", "emptyCircle"], ["#6699cc", "diamond"], ["#661100", "rect"], ["#117733", "emptyTriangle"], ["#888888", "circle"]];
const ALIASES = { glibc: "pthread_mutex", futex: "pthread_mutex", stock: "qspinlock" };

function look(name, others) {
  const lock = (one) => ALIASES[one.split(",")[0]] || one.split(",")[0];
  const strangers = [...new Set(others.map(lock))].filter((one) => !LOOKS[one]);
  const [colour, symbol] = LOOKS[lock(name)] || OTHERS[strangers.indexOf(lock(name)) % OTHERS.length];
  return { colour, symbol };
}

function short(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (size >= limit) return +(value / (limit === 1e4 ? 1e3 : limit)).toPrecision(3) + unit;
  return String(+value.toPrecision(3));
}

function axis(place, type, name, more) {
  const { ink: colour, line } = place;
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

const base = (place) => ({
  animation: false, aria: { enabled: true }, textStyle: { color: place.ink },
  title: place.title ? { text: place.title, left: place.labels || 12, top: 8, textStyle: { color: place.ink, fontSize: 15 } } : undefined,
  tooltip: { trigger: "item", confine: true },
});

/** The pixels beside the lines for their names, in letters of some six pixels. */
function roomForNames(series) {
  const longest = Math.max(...series.map((one) => one.name.length));
  return Math.min(300, Math.max(120, 30 + 6.2 * longest));
}

function lines(chart, place) {
  const wide = place.wide;
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
  return Object.assign(base(place), {
    legend: { show: !wide, type: "scroll", textStyle: { color: place.ink } },
    grid: { left: 62, right: wide ? roomForNames(chart.series) : 16, top: place.title ? 48 : wide ? 24 : 60, bottom: 46 },
    xAxis: axis(place, "category", "threads", { data: threads.map(String), boundaryGap: wide ? false : true }),
    yAxis: axis(place, log ? "log" : "value", chart.y, { nameGap: 46, min: chart.y.startsWith("fairness") ? .5 : undefined }),
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

function pairs(chart, place) {
  const names = chart.series.map((one) => one.name);
  const all = chart.series.flatMap((one) => one.points.flatMap((point) => point.slice(0, 2)));
  const [least, most] = [Math.min(...all) / 1.3, Math.max(...all) * 1.3];
  const number = axis(place, "log", "", { min: least, max: most });
  const series = chart.series.map((one) => {
    const { colour, symbol } = look(one.name, names);
    return { name: one.name, type: "scatter", symbol, symbolSize: 11, color: colour, data: one.points.map((point) => point.slice(0, 3)) };
  });
  series.push({ type: "line", silent: true, symbol: "none", data: [[least, least], [most, most]], lineStyle: { color: place.ink, type: "dotted" }, tooltip: { show: false } });
  return Object.assign(base(place), {
    legend: { type: "scroll", data: names, top: place.title ? 34 : 0, textStyle: { color: place.ink } }, grid: { left: 62, right: 24, top: place.title ? 70 : 60, bottom: 46 },
    xAxis: Object.assign({}, number, { name: "measured, " + chart.unit }),
    yAxis: Object.assign({}, number, { name: "predicted", nameGap: 46 }),
    tooltip: { confine: true, formatter: (at) => `${at.seriesName}, ${at.value[2]} threads<br>measured ${short(at.value[0])}, predicted ${short(at.value[1])}` },
    series,
  });
}

// The colours of shares of the best: the darker, the further away. Half of them are for the last quarter,
// where differences matter. Darkness alone tells them apart.
const STOPS = [[0, [60, 0, 40]], [.5, [150, 20, 40]], [.75, [225, 90, 40]], [.9, [250, 190, 90]], [.97, [252, 238, 190]], [1, [232, 243, 250]]];

function shade(share) {
  const above = Math.max(1, STOPS.findIndex(([at]) => at >= share));
  const [[low, dark], [high, light]] = [STOPS[above - 1], STOPS[above]];
  return `rgb(${dark.map((one, at) => Math.round(one + (share - low) / (high - low) * (light[at] - one))).join(",")})`;
}

const SHADES = Array.from({ length: 101 }, (_, at) => shade(at / 100));

// The cells of one lock. A dot says that the lock is unfair there.
function heat(chart, place) {
  const panel = chart.panels.find((one) => one.name === place.chosen) || chart.panels[0];
  const { wide, cell } = place;
  const unfair = panel.cells.filter((one) => one[3]).map(([x, y, share]) => ({ value: [x, y], itemStyle: { color: share < .6 ? "#ffffff" : "#1d1d1f" } }));
  const grid = cell
    ? { left: place.labels, top: 76, width: cell * chart.columns.length, height: cell * chart.rows.length }
    : { left: wide ? 210 : 110, right: 16, top: 16, bottom: 110 };
  const names = { color: place.ink, fontSize: cell ? 10 : 12, interval: cell ? 0 : undefined };
  return Object.assign(base(place), {
    grid,
    xAxis: axis(place, "category", cell ? "" : "threads", { data: chart.columns, position: cell ? "top" : "bottom", axisLabel: Object.assign({}, names, { rotate: cell ? 90 : 45 }), nameGap: 52, splitLine: { show: false } }),
    yAxis: axis(place, "category", "", { data: chart.rows, inverse: true, splitLine: { show: false },
      axisLabel: Object.assign({ show: !cell || place.labels > 40, width: cell ? 290 : wide ? 200 : 100, overflow: "truncate" }, names) }),
    visualMap: { show: !cell, seriesIndex: 0, min: 0, max: 1, precision: 2, calculable: true, orient: "horizontal", left: "center", bottom: 0, text: ["the best", "0"],
      textStyle: { color: place.ink }, inRange: { color: SHADES } },
    tooltip: { confine: true, formatter: (at) => `${panel.name}, ${chart.rows[at.value[1]]}, ${chart.columns[at.value[0]]} threads: ${at.value[2].toFixed(2)} of the best` },
    series: [
      { type: "heatmap", name: panel.name, data: panel.cells.map(([x, y, share]) => ({ value: [x, y, share], label: { color: share < .6 ? "#ffffff" : "#1d1d1f" } })),
        itemStyle: { borderColor: place.paper, borderWidth: 1 },
        label: { show: !cell && wide && chart.columns.length < 16, formatter: (at) => at.value[2].toFixed(2) } },
      { type: "scatter", silent: true, symbolSize: 4, symbolOffset: cell ? 0 : [0, 9], data: unfair },
    ],
  });
}

function intervals(chart, place) {
  const names = chart.bars.map((bar) => bar.name);
  const colour = (name) => look(name, names).colour;
  return Object.assign(base(place), {
    grid: { left: 110, right: 30, top: place.title ? 48 : 16, bottom: 46 },
    xAxis: axis(place, "value", chart.unit, { scale: true }),
    yAxis: axis(place, "category", "", { data: names, inverse: true }),
    series: [
      { type: "custom", silent: true, data: chart.bars.map((bar, at) => [at, bar.low, bar.high]), tooltip: { show: false },
        renderItem: (parameters, api) => {
          const [low, high] = [api.coord([api.value(1), api.value(0)]), api.coord([api.value(2), api.value(0)])];
          return { type: "line", shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] }, style: { stroke: colour(names[api.value(0)]), lineWidth: 6, opacity: .5 } };
        } },
      { type: "scatter", symbolSize: 12, data: chart.bars.map((bar, at) => ({ value: [bar.middle, at], itemStyle: { color: colour(bar.name) } })),
        markLine: { silent: true, symbol: "none", data: [{ xAxis: 1 }], lineStyle: { color: place.ink, type: "dotted" }, label: { show: false } } },
    ],
  });
}

// A value for each name, with its spread where it has one.
function bars(chart, place) {
  const names = chart.bars.map((bar) => bar.name);
  const colour = (name) => (chart.alike ? "#0072b2" : look(name, names).colour);
  const spread = chart.bars.map((bar, at) => [at, bar.low, bar.high]).filter(([, low, high]) => low < high);
  return Object.assign(base(place), {
    grid: { left: place.wide ? 230 : 110, right: 40, top: place.title ? 48 : 16, bottom: 46 },
    xAxis: axis(place, "value", chart.unit, {}),
    yAxis: axis(place, "category", "", { data: names, inverse: true, axisLabel: { color: place.ink, width: place.wide ? 215 : 100, overflow: "truncate" } }),
    series: [
      { type: "bar", barMaxWidth: 22, data: chart.bars.map((bar) => ({ value: bar.middle, itemStyle: { color: colour(bar.name) } })), label: { show: !spread.length, position: "right", color: place.ink, formatter: (at) => short(at.value) } },
      { type: "custom", silent: true, tooltip: { show: false }, data: spread, z: 3,
        renderItem: (parameters, api) => {
          const [low, high] = [api.coord([api.value(1), api.value(0)]), api.coord([api.value(2), api.value(0)])];
          return { type: "line", shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] }, style: { stroke: place.ink, lineWidth: 3, opacity: .6 } };
        } },
    ],
  });
}

const DRAW = { lines, pairs, heat, intervals, bars };
