"use strict";
// what goes wrong is kept where a test, and a curious reader, can find it
const errors = [];
window.addEventListener("error", (event) => note(event.message));
window.addEventListener("unhandledrejection", (event) => note(String(event.reason)));
function note(text) {
  errors.push(text);
  document.documentElement.dataset.errors = errors.join("; ");
}

const byId = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const plots = [...document.querySelectorAll(".plot")];

// ---- theme
const system = window.matchMedia("(prefers-color-scheme: dark)");
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (window.Plotly) for (const plot of plots) if (plot.data) Plotly.relayout(plot, themed(plot));
}
setTheme(system.matches ? "dark" : "light");
system.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
byId("theme").addEventListener("click", () =>
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
window.addEventListener("beforeprint", () => setTheme("light"));

// ---- figures
function themed(plot) {
  const ink = colour("--ink"), soft = colour("--soft"), grid = colour("--grid"), sheet = colour("--sheet");
  const style = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", "font.color": ink,
    "font.family": getComputedStyle(document.body).fontFamily,
    "hoverlabel.bgcolor": sheet, "hoverlabel.bordercolor": soft, "hoverlabel.font.color": ink, "hoverlabel.align": "left",
    "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": soft, "modebar.activecolor": ink,
  };
  for (const axis of ["xaxis", "yaxis"]) {
    style[axis + ".gridcolor"] = grid;
    style[axis + ".linecolor"] = soft;
    style[axis + ".tickcolor"] = soft;
  }
  if (plot.layout.updatemenus) {
    style["updatemenus[0].bgcolor"] = sheet;
    style["updatemenus[0].bordercolor"] = soft;
  }
  return style;
}
async function unpacked(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
async function draw() {
  if (!plots.length) return;
  const code = document.createElement("script");
  code.textContent = await unpacked("plotly-packed");
  document.head.append(code);
  for (const plot of plots) {
    const figure = JSON.parse(await unpacked(plot.dataset.figure));
    await Plotly.newPlot(plot, figure.data, figure.layout, { displaylogo: false, responsive: true });
    await Plotly.relayout(plot, themed(plot));
    plot.dataset.drawn = "yes";
  }
}

// ---- table of trials
const data = JSON.parse(byId("trial-data").textContent);
const table = byId("trial-table"), step = 100;
const columns = data.columns.map((name, index) => index)
  .filter((index) => data.rows.some((row) => row[index] !== null && row[index] !== ""));
const MLUPS = data.columns.indexOf("MLUPS"), OUTCOME = data.columns.indexOf("outcome"), REASON = data.columns.length - 1;
let order = { column: MLUPS, up: false }, limit = step;

function compared(a, b) {
  const x = data.rows[a][order.column], y = data.rows[b][order.column];
  if (x === null || y === null) return (x === null) - (y === null); // what has no value comes last, either way
  const sign = order.up ? 1 : -1;
  return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
}
function shown() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = data.rows.map((row, index) => index).filter((index) => {
    const text = (data.rows[index].join(" ") + " " + data.configs[index]).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return hits.sort(compared);
}
function printed(value, digits) {
  if (typeof value !== "number" || digits === undefined) return String(value);
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
function cell(row, index) {
  const td = document.createElement("td"), value = row[index];
  td.textContent = value === null ? "" : printed(value, data.digits[data.columns[index]]);
  if (data.numeric[index]) td.className = "n";
  if (index === REASON) td.className = "long";
  if (index === OUTCOME) {
    td.className = "badge";
    td.style.setProperty("--dot", value === "ok" ? "#2a9d6f" : "#d1495b");
  }
  return td;
}
function fill() {
  const found = shown();
  table.tBodies[0].replaceChildren(...found.slice(0, limit).map((index) => {
    const tr = document.createElement("tr");
    if (index === data.winner) tr.className = "best";
    tr.append(...columns.map((column) => cell(data.rows[index], column)));
    const last = document.createElement("td"), button = document.createElement("button");
    button.type = "button"; button.className = "copy"; button.textContent = "copy"; button.dataset.copy = data.configs[index];
    button.title = "copy the configuration for lbmtune measure";
    last.append(button); tr.append(last);
    return tr;
  }));
  byId("shown").textContent = `${Math.min(limit, found.length)} of ${found.length} shown, ${data.rows.length} in all`;
  byId("more").hidden = found.length <= limit;
}
function heads() {
  const tr = document.createElement("tr");
  for (const column of columns) {
    const th = document.createElement("th");
    const mark = column === order.column ? (order.up ? " \u25b4" : " \u25be") : "";
    th.textContent = data.columns[column] + mark;
    th.tabIndex = 0;
    th.setAttribute("aria-sort", mark ? (order.up ? "ascending" : "descending") : "none");
    if (data.numeric[column]) th.className = "n";
    const sort = () => {
      order = { column, up: column === order.column ? !order.up : !data.numeric[column] };
      heads(); fill();
    };
    th.addEventListener("click", sort);
    th.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    tr.append(th);
  }
  tr.append(document.createElement("th"));
  table.tHead.replaceChildren(tr);
}
byId("filter").addEventListener("input", () => { limit = step; fill(); });
byId("more").addEventListener("click", () => { limit += 10 * step; fill(); });
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const text = button.dataset.copyFrom ? byId(button.dataset.copyFrom).textContent : button.dataset.copy;
  copy(text);
  const before = button.textContent;
  button.textContent = "copied";
  setTimeout(() => { button.textContent = before; }, 1200);
});
function copy(text) {
  // navigator.clipboard is missing on pages opened from a file in some browsers
  const area = document.createElement("textarea");
  area.value = text; document.body.append(area); area.select();
  document.execCommand("copy"); area.remove();
}
heads(); fill();
draw().then(() => { document.documentElement.dataset.ready = "yes"; });
