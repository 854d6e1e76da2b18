// ---- one trial: a point of a figure or a row of the table shows the same panel
let selected = null;
function wrappedText(text, width = 64) {
  const lines = [""];
  for (const word of text.split(/(?<=,)/)) {
    if ((lines.at(-1) + word).length > width) lines.push("");
    lines[lines.length - 1] += word;
  }
  const safe = (line) => line.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return lines.map(safe).join("<br>");
}
function pairsOf(rows) {
  const found = document.createElement("table");
  found.className = "pairs";
  for (const [name, value, meaning] of rows.filter(([, one]) => one !== "" && one !== null && one !== undefined)) {
    const row = found.insertRow(), head = document.createElement("th");
    head.textContent = name; head.scope = "row";
    if (meaning) head.title = meaning;
    row.append(head); row.insertCell().textContent = value;
  }
  return found;
}
function titled(title, rows) {
  const head = document.createElement("h3"), body = pairsOf(rows);
  head.textContent = title;
  return body.rows.length ? [head, body] : [];
}
function select(number) {
  const place = data.places.get(number), row = data.rows[place], more = data.details[place];
  selected = number;
  const knobs = data.configs[place].split(",").map((one) => one.split(/=(.*)/s)).map(([name, value]) => [name, value, data.meanings[name]]);
  const known = data.columns.map((name, index) => [name, printed(row[index], data.digits[name]), data.meanings[name]])
    .filter(([name]) => !knobs.some(([knob]) => knob === name));
  const command = `lbmtune measure ${data.configs[place]} --study .`;
  const copying = document.createElement("button");
  copying.type = "button"; copying.className = "copy"; copying.dataset.copy = command; copying.textContent = "copy command";
  copying.title = command;
  byId("detail-title").textContent = `Trial ${number}${place === data.winner ? ", the winner" : ""}`;
  byId("detail-body").replaceChildren(
    copying,
    ...titled("Measured", known.filter(([name]) => name !== "trial")),
    ...titled("Knobs that differ from their defaults", knobs),
    ...titled("Terms of the model, ps per update", more.terms.map(([name, ps, figures]) => [name, ps, [data.terms[name], figures].filter(Boolean).join(": ")])),
    ...titled("Samples", [["time of a step (us)", more.samples.join(", ")], ...more.state]),
  );
  byId("detail").hidden = false;
  table.deselectRow(); table.selectRow(number);
  if (!table.getRow(number).getElement().isConnected) table.scrollToRow(number, "center", true).catch(() => {});
  follow();
}
// what is far from the screen follows when it comes near it
async function follow(wanted = near) {
  for (const plot of plots.filter((one) => one.dataset.drawn && wanted(one))) {
    if (plot.late) await remake(plot);
    if ((plot.marked ?? null) !== selected) mark(plot);
  }
}
function mark(plot) { // the selected trial stands out in every figure that has it
  plot.marked = selected;
  const own = plot.data.map((trace, index) => index).filter((index) => plot.data[index].meta === "trials");
  if (!own.length) return;
  const points = own.map((index) => {
    if (selected === null) return null;
    const place = [...plot.data[index].customdata].indexOf(selected);
    return place < 0 ? [] : [place];
  });
  // of a trace with the selected one all points are drawn
  const most = own.map((index, i) => (points[i]?.length ? 0 : plot.figure.data[index].marker?.maxdisplayed ?? 0));
  Plotly.restyle(plot, { selectedpoints: points, "marker.maxdisplayed": most }, own);
}
document.addEventListener("scroll", () => follow(), { passive: true });
window.addEventListener("beforeprint", () => follow(() => true));
function closeDetail() {
  byId("detail").hidden = true; selected = null; table.deselectRow(); follow();
}
byId("detail-close").addEventListener("click", closeDetail);
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !byId("detail").hidden) closeDetail(); });
document.addEventListener("drawn", (event) => {
  event.target.on("plotly_click", ({ points }) => {
    const point = points.find((one) => one.data.meta === "trials");
    if (point) select(point.data.customdata[point.pointNumber]);
  });
  follow();
});
