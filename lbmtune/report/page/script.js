"use strict";
// errors are collected for tests
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
const kept = {
  get theme() { try { return localStorage.getItem("lbmtune-theme"); } catch { return null; } },
  set theme(name) { try { localStorage.setItem("lbmtune-theme", name); } catch { /* a browser that keeps nothing */ } },
};
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (window.Plotly) for (const plot of plots) if (plot.data) Plotly.relayout(plot, themed(plot.layout));
}
setTheme(kept.theme || (system.matches ? "dark" : "light"));
system.addEventListener("change", (event) => { if (!kept.theme) setTheme(event.matches ? "dark" : "light"); });
byId("theme").addEventListener("click", () => {
  kept.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(kept.theme);
});
window.addEventListener("beforeprint", () => setTheme("light"));

// ---- figures
function themed(layout) {
  const ink = colour("--ink"), soft = colour("--soft"), grid = colour("--grid"), sheet = colour("--sheet");
  const style = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", "font.color": ink,
    "font.family": getComputedStyle(document.body).fontFamily,
    "hoverlabel.bgcolor": sheet, "hoverlabel.bordercolor": soft, "hoverlabel.font.color": ink, "hoverlabel.align": "left",
    "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": soft, "modebar.activecolor": ink,
  };
  for (const axis of Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))) {
    style[axis + ".gridcolor"] = grid;
    style[axis + ".linecolor"] = soft;
    style[axis + ".tickcolor"] = soft;
  }
  if (layout.updatemenus) {
    style["updatemenus[0].bgcolor"] = sheet;
    style["updatemenus[0].bordercolor"] = soft;
  }
  return style;
}
async function unpacked(id) {
  const packed = await fetch(`data:application/gzip;base64,${byId(id).textContent.trim()}`);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).text();
}

// on narrow screens legends go below the plot, and titles of axes wrap
const narrow = window.matchMedia("(max-width: 640px)");
const LETTERS = 24; // per line of a title
const AXES_HEIGHT = 300, TITLES_HEIGHT = 100, EDGES = 12; // axes with titles; titles alone; legend
function broken(text) {
  return text.replace(new RegExp(`(.{1,${LETTERS}})(?: |$)`, "g"), "$1<br>").replace(/<br>$/, "");
}
function squeezed(layout) {
  layout.legend = { ...layout.legend, orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } };
  layout.margin = { ...layout.margin, l: 40, r: 12 };
  for (const axis of Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))) {
    const title = layout[axis].title;
    if (title && title.text) layout[axis].title = { ...title, text: broken(title.text), font: { size: 12 } };
  }
  for (const menu of layout.updatemenus || []) { menu.pad = { ...menu.pad, l: -30 }; menu.font = { size: 11 }; }
  return layout;
}
function dressed(layout) { // at once, because each change of a layout draws anew
  for (const [path, value] of Object.entries(themed(layout))) {
    const names = path.split(/[.[\]]+/), last = names.pop();
    names.reduce((part, name) => (part[name] ??= {}), layout)[last] = value;
  }
  return layout;
}
// Plotly draws a figure anew if its legend finds too little room: it is made before, by the widths of the entries
const ENTRY = 19, GAP = 5, SYMBOL = 40, PAD = 12, AXIS = 59; // entries and their symbols; around a legend; axis with title
const pen = document.createElement("canvas").getContext("2d");
function makeRoom(plot, data, layout) {
  const entries = data.filter((one) => one.name && one.visible !== false && one.showlegend !== false), { legend, margin } = layout;
  if (!legend || layout.showlegend === false || entries.length < 2) return;
  pen.font = `${legend.font.size}px ${layout.font.family}`;
  const widths = entries.map((one) => SYMBOL + pen.measureText(one.name).width), widest = Math.max(...widths);
  const below = legend.orientation === "h", wide = plot.clientWidth - margin.l;
  const room = wide - margin.r;
  let rows = entries.length;
  if (below) {
    const own = entries.some((one) => one.legendgroup), one = widths.reduce((sum, width) => sum + width + GAP, -GAP) < room;
    let filled = rows = 0;
    for (const width of widths) {
      const next = GAP + (own || one ? width : widest);
      if (!rows || filled + next - (own ? 0 : GAP) > room) { rows += 1; filled = 0; }
      filled += next;
    }
    margin.b = Math.max(margin.b, AXIS + rows * ENTRY);
  } else margin.r = Math.max(margin.r, Math.ceil((widest + GAP + PAD + (legend.x - 1) * wide) / legend.x));
  heighten(plot, rows * ENTRY, below);
}
function heighten(plot, rows, below) { // Plotly gives a legend below the axes up to half of the height, one beside them all of it
  const legend = rows + EDGES, height = legend + (below ? Math.max(legend, AXES_HEIGHT) : TITLES_HEIGHT);
  if (height <= plot.clientHeight) return false;
  plot.style.height = `${Math.ceil(height)}px`;
  return true;
}
async function place(plot) {
  const { data, layout } = structuredClone(plot.figure); // Plotly modifies its arguments
  plot.style.height = "";
  dressed(narrow.matches ? squeezed(layout) : layout);
  makeRoom(plot, data, layout);
  await Plotly.react(plot, data, layout, { displaylogo: false, responsive: true });
  const rows = plot.querySelector(".legend .scrollbox");
  if (rows && heighten(plot, rows.getBBox().height, layout.legend.orientation === "h")) await Plotly.Plots.resize(plot);
}
narrow.addEventListener("change", async () => { for (const plot of plots) if (plot.figure) await place(plot); });
const makers = {}; // of figures that are made from the table of trials, by name
const idle = () => new Promise((done) => (window.requestIdleCallback ? requestIdleCallback(done, { timeout: 200 }) : setTimeout(done)));
async function drawOne(plot) {
  plot.figure = plot.dataset.figure ? named(JSON.parse(await unpacked(plot.dataset.figure))) : makers[plot.dataset.maker]();
  await place(plot);
  plot.dataset.drawn = "yes";
  plot.dispatchEvent(new CustomEvent("drawn", { bubbles: true }));
}
// points of trials carry the number of each; the label is made here, once for all figures
let labelOf = (number) => `trial ${number}`;
function named(figure) {
  for (const trace of figure.data) if (trace.meta === "trials") trace.text = [...trace.customdata].map((n) => labelOf(n));
  return figure;
}
// what is seen, or nearly, is drawn at once; the rest in idle time, so that it is there for a printer
const NEAR = 400; // pixels below the screen
const near = (plot) => { const box = plot.getBoundingClientRect(); return box.bottom > -NEAR && box.top < innerHeight + NEAR; };
const left = new Set(plots);
let drawing = null;
async function unpackPlotly() {
  const code = document.createElement("script");
  code.textContent = await unpacked("plotly-packed");
  document.head.append(code);
}
async function drawWhere(wanted, pause) {
  drawing ??= unpackPlotly();
  await drawing;
  for (let next; (next = [...left].find(wanted));) {
    left.delete(next);
    await drawOne(next);
    await pause();
  }
}
const drawAll = () => drawWhere(() => true, async () => {});
async function draw() {
  if (!plots.length) return;
  await drawWhere(near, async () => {});
  document.addEventListener("scroll", () => drawWhere(near, async () => {}), { passive: true });
  setTimeout(() => drawWhere(() => true, idle), 1500);
}

// ---- copying
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
