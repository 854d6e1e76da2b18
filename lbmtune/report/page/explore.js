// ---- figures of the trials that the table shows: speed by knob, two knobs, all knobs
const knobNames = () => data.knobs.map((one) => one.name);
const value = (row, name) => row[at(name)];
const measured = (rows) => rows.filter((row) => row[at("MLUPS")] !== null);
const axisOf = (title, more = {}) => ({ title: { text: title }, automargin: true, zeroline: false, ...more });
const ordered = (values) => [...new Set(values.filter((one) => one !== null && one !== ""))]
  .sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true })));
const plain = (x, y) => ({
  template: "none", margin: { l: 64, r: 30, t: 20, b: 56 }, hovermode: "closest", autosize: true, showlegend: false, xaxis: x, yaxis: y,
});

const POINTS = 1200; // up to which all are drawn
function byKnob() {
  const name = byId("knob").value, rows = measured(table ? shownRows() : data.rows);
  const traces = ordered(rows.map((row) => value(row, name))).map((one) => {
    const mine = rows.filter((row) => value(row, name) === one);
    return {
      type: "box", name: String(one), y: mine.map((row) => row[at("MLUPS")]), boxpoints: rows.length > POINTS ? "outliers" : "all", jitter: 0.5, pointpos: 0,
      customdata: mine.map((row) => row[0]), meta: "trials", marker: { size: 5, opacity: 0.6, color: "#4c8bb5" }, line: { width: 1.2 },
      hovertemplate: "%{text}<br>%{y:,.0f} MLUPS<extra></extra>",
    };
  });
  return named({ data: traces, layout: plain(axisOf(name, { type: "category" }), axisOf("MLUPS")) });
}
function byTwo() {
  const x = byId("knob-x").value, y = byId("knob-y").value, rows = measured(table ? shownRows() : data.rows);
  const xs = ordered(rows.map((row) => value(row, x))), ys = ordered(rows.map((row) => value(row, y)));
  const best = ys.map(() => xs.map(() => null)), who = ys.map(() => xs.map(() => ""));
  for (const row of rows) {
    const i = ys.indexOf(value(row, y)), j = xs.indexOf(value(row, x));
    if (i < 0 || j < 0 || best[i][j] >= row[at("MLUPS")]) continue;
    best[i][j] = row[at("MLUPS")]; who[i][j] = labelOf(row[0]);
  }
  const map = {
    type: "heatmap", x: xs.map(String), y: ys.map(String), z: best, text: who, colorscale: "Viridis", hoverongaps: false,
    colorbar: { orientation: "h", y: 1.01, yanchor: "bottom", thickness: 10, title: { text: "best MLUPS", font: { size: 11 } } }, hovertemplate: "%{text}<br>%{z:,.0f} MLUPS<extra></extra>",
  };
  const layout = plain(axisOf(x, { type: "category" }), axisOf(y, { type: "category" }));
  layout.margin = { ...layout.margin, l: 88, t: 84 };
  return { data: [map], layout };
}
const CLASSES = [[0.5, "#bbbbbb", 0.25], [0.9, "#56b4e9", 0.45], [0.99, "#0072b2", 0.7], [1, "#d55e00", 1]];
const LINES = 200; // of a class, at most
function byAll() { // a line is a trial; the fastest are drawn last
  const names = knobNames().slice(0, narrow.matches ? 5 : 10), rows = measured(table ? shownRows() : data.rows);
  const levels = names.map((name) => ordered(rows.map((row) => value(row, name))));
  const speeds = rows.map((row) => row[at("MLUPS")]).sort((a, b) => a - b), top = speeds.at(-1) || 1;
  const height = (row, k) => {
    const i = levels[k].indexOf(value(row, names[k]));
    return i < 0 ? null : levels[k].length < 2 ? 0.5 : i / (levels[k].length - 1);
  };
  let below = 0;
  const traces = CLASSES.map(([share, colour, opacity]) => {
    const x = [], y = [], low = below;
    const mine = rows.filter((row) => row[at("MLUPS")] > low * top && row[at("MLUPS")] <= share * top);
    const every = Math.ceil(mine.length / LINES);
    for (const row of mine.filter((_, place) => place % every === 0)) {
      names.forEach((name, k) => { x.push(name); y.push(height(row, k)); });
      x.push("speed", null); y.push(row[at("MLUPS")] / top, null);
    }
    below = share;
    return { type: "scatter", mode: "lines", x, y, name: `up to ${Math.round(100 * share)} % of the best`, line: { width: 1, color: colour }, opacity, hoverinfo: "skip" };
  });
  const layout = plain(axisOf("", { type: "category" }), { visible: false, range: [-0.06, 1.06], fixedrange: true });
  layout.showlegend = true;
  layout.legend = { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } };
  const few = (values) => (values.length <= 6 ? values : [values[0], values.at(-1)]);
  layout.annotations = names.flatMap((name, k) => few(levels[k]).map((one) => ({
    x: name, y: levels[k].length < 2 ? 0.5 : levels[k].indexOf(one) / (levels[k].length - 1), text: String(one).slice(0, 14),
    showarrow: false, xanchor: "left", xshift: 4, font: { size: 10 },
  })));
  return { data: traces, layout };
}
Object.assign(makers, { knob: byKnob, pair: byTwo, all: byAll });

function offer(id, first) {
  const list = byId(id);
  if (!list) return;
  list.append(...data.knobs.map(({ name, told }) => new Option(told ? `${name}: ${told}` : name, name)));
  list.value = knobNames()[Math.min(first, data.knobs.length - 1)];
  list.addEventListener("change", again);
}
async function remake(plot) {
  plot.late = false;
  plot.figure = makers[plot.dataset.maker]();
  await place(plot);
  plot.marked = null;
}
async function again() {
  for (const plot of plots.filter((one) => one.dataset.maker && one.figure)) plot.late = true;
  await follow();
}
let waiting = null;
document.addEventListener("filtered", () => { clearTimeout(waiting); waiting = setTimeout(again, 150); });
