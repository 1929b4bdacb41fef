// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Draws figures below each other in one SVG, without a browser.
"use strict";

const PLACE = { wide: true, ink: "#1d1d1f", line: "#d5d7db", paper: "#ffffff" };
const WIDTH = 760;
const CELL = 14;
const ROW_NAMES = 300;

// Nothing is animated, so nothing that is put off matters.
globalThis.setTimeout = () => 0;
globalThis.clearTimeout = () => {};

// A chart as an SVG that is `x` and `y` away from the corner of the picture.
function piece(figure, place, [x, y, width, height]) {
  const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width, height });
  drawn.setOption(DRAW[figure.chart.kind](figure.chart, Object.assign({}, PLACE, place)));
  if (figure.chart.kind === "lines") nameLines(drawn, figure.chart);
  return drawn.renderToSVGString().replace("<svg ", `<svg x="${x}" y="${y}" `);
}

function legend(x, y) {
  const shares = [0, .25, .5, .75, .9, .95, 1];
  const boxes = shares.map((share, at) => `<rect x="${x + 52 * at}" y="${y}" width="14" height="14" fill="${shade(share)}" stroke="#888"/><text x="${x + 52 * at + 19}" y="${y + 11}">${share}</text>`);
  return `<g font-family="sans-serif" font-size="12" fill="${PLACE.ink}">${boxes.join("")}<text x="${x + 52 * shares.length}" y="${y + 11}">of the best; a dot: unfair there</text></g>`;
}

function picture(figures) {
  const pieces = [];
  let [width, y] = [WIDTH, 0];
  for (const figure of figures) {
    const { chart, title } = figure;
    if (chart.kind === "heat") {
      const size = CELL * chart.columns.length;
      let x = 0;
      chart.panels.forEach((panel, at) => {
        const labels = at ? 12 : ROW_NAMES;
        const place = { title: panel.name, chosen: panel.name, cell: CELL, labels };
        const box = [x, y, labels + size + 4, 84 + CELL * chart.rows.length];
        pieces.push(piece(figure, place, box));
        x += box[2];
      });
      y += 84 + CELL * chart.rows.length;
      pieces.push(legend(ROW_NAMES, y));
      y += 28;
      width = Math.max(width, x + 8, ROW_NAMES + 600);
      continue;
    }
    const height = chart.bars ? 100 + 32 * chart.bars.length : chart.kind === "pairs" ? 620 : 400;
    pieces.push(piece(figure, { title }, [0, y, WIDTH, height]));
    y += height;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}"><rect width="100%" height="100%" fill="#fff"/>\n${pieces.join("\n")}\n</svg>\n`;
}
