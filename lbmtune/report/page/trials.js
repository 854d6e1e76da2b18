// ---- table of trials: a library draws, sorts and filters it
let data = null, table = null;
const field = (index) => `c${index}`;
const at = (name) => data.columns.indexOf(name);
const rowOf = (number) => data.rows[data.places.get(number)];

function printed(value, digits) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number" || digits === undefined) return String(value);
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
// a range: 5, 5..9, 5.., ..9, >5, <9
function within(text, value) {
  const number = "(-?\\d+(?:\\.\\d+)?(?:e-?\\d+)?)";
  const found = text.replace(/\s|,/g, "").match(new RegExp(`^(?:(<|>|=)${number}|${number}?\\.\\.${number}?|${number})$`, "i"));
  if (!found) return true; // not written to its end
  const [, sign, bound, low, high, exact] = found;
  if (value === null) return false;
  if (sign === ">") return value > Number(bound);
  if (sign === "<") return value < Number(bound);
  if (sign === "=") return value === Number(bound);
  if (exact !== undefined) return value === Number(exact);
  return (low === undefined || value >= Number(low)) && (high === undefined || value <= Number(high));
}
// words that all have to fit: scheme=aa asks one column, a bare word all that are not keys
function fits(row, text) {
  const words = text.toLowerCase().replace(/\s*([=:])\s*/g, "$1").split(/\s+/).filter(Boolean);
  return words.every((word) => {
    const [name, value] = word.split(/[=:](.*)/s);
    const column = data.columns.findIndex((one) => one.toLowerCase() === name);
    if (value !== undefined && column >= 0) {
      const cell = row[field(column)];
      return data.numeric[column] ? within(value, cell) : String(cell ?? "").toLowerCase() === value;
    }
    return data.columns.some((one, index) => one !== "key" && String(row[field(index)] ?? "").toLowerCase().includes(word));
  });
}
function choice(cell, rendered, done) {
  const column = Number(cell.getField().slice(1)), found = document.createElement("select");
  found.setAttribute("aria-label", `filter ${data.columns[column]}`);
  const values = [...new Set(data.rows.map((row) => row[column]).filter((value) => value !== null && value !== ""))];
  found.append(new Option("", ""), ...values.sort().map((value) => new Option(value, value)));
  found.addEventListener("change", () => done(found.value));
  return found;
}
function entry(cell, rendered, done) {
  const column = Number(cell.getField().slice(1)), found = document.createElement("input");
  found.setAttribute("aria-label", `filter ${data.columns[column]}`);
  found.addEventListener("input", () => done(found.value));
  return found;
}
// the library finds the width of each column by a layout of the whole table; these widths need none
const CELL = 11, HEAD = 40, DOT = 15, LONGEST = 20; // pixels beside a text, of the dot of an outcome; texts that are measured
function widthOf(index, values) {
  const name = data.columns[index], given = [...values].filter((one) => one !== null);
  if (data.numeric[index]) given.sort((a, b) => a - b).splice(1, given.length - 2);
  const texts = given.map((one) => printed(one, data.digits[name])).sort((a, b) => b.length - a.length).slice(0, LONGEST);
  const family = getComputedStyle(document.body).fontFamily, wide = (text) => pen.measureText(text).width;
  pen.font = `650 14px ${family}`;
  const cells = Math.max(0, ...texts.map(wide)) + CELL + (name === "outcome" ? DOT : 0);
  pen.font = `700 14px ${family}`;
  return Math.ceil(Math.max(cells, wide(name) + HEAD));
}
const CHOICES = 24; // values up to which a list offers them
function columnOf(index) {
  const name = data.columns[index], numeric = data.numeric[index];
  const values = new Set(data.rows.map((row) => row[index]));
  const few = !numeric && values.size <= CHOICES;
  return {
    title: name, field: field(index), frozen: index === 0, hozAlign: numeric ? "right" : "left",
    headerTooltip: data.meanings[name] || name, sorter: numeric ? "number" : "alphanum",
    sorterParams: { alignEmptyValues: "bottom" }, headerSortStartingDir: numeric ? "desc" : "asc",
    formatter: (cell) => {
      if (name === "outcome") cell.getElement().style.setProperty("--dot", cell.getValue() === "ok" ? "#2a9d6f" : "#d1495b");
      const text = document.createElement("span");
      if (name === "outcome") text.className = "badge";
      text.textContent = printed(cell.getValue(), data.digits[name]);
      return text;
    },
    headerFilter: few ? choice : entry, headerFilterLiveFilter: false, headerFilterPlaceholder: numeric ? "5..9" : "",
    headerFilterFunc: (asked, value) =>
      numeric ? within(asked, value) : few ? String(value) === asked : String(value ?? "").toLowerCase().includes(asked.toLowerCase()),
    width: widthOf(index, values), maxWidth: name === "reason" ? 480 : undefined,
  };
}
function chooser(columns) {
  byId("columns").replaceChildren(...columns.map((column) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox"; box.checked = true;
    box.addEventListener("change", () => table.toggleColumn(column.field));
    label.append(box, ` ${column.title}`);
    return label;
  }));
}
function walk(event) { // arrows go from row to row, Enter shows one
  const row = event.target.closest(".tabulator-row");
  if (!row || event.target !== row) return;
  const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
  if (next) next.focus();
  if (event.key === "Enter") select(Number(row.dataset.trial));
  if (next || event.key === "Enter") event.preventDefault();
}
function sortable(header) {
  const title = header.querySelector(".tabulator-col-content");
  if (!title) return;
  title.tabIndex = 0;
  title.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target !== title) return;
    const name = header.getAttribute("tabulator-field"), [now] = table.getSorters();
    const first = data.numeric[Number(name.slice(1))] ? "desc" : "asc";
    const dir = now && now.field === name ? (now.dir === "asc" ? "desc" : "asc") : first;
    table.setSort(name, dir);
  });
}
const recordOf = (row) => Object.fromEntries(data.columns.map((name, index) => [name, row[index]]));
const shownRows = () => table.getRows("active").map((row) => data.rows[row.getData().place]);
async function tabulate() {
  data = JSON.parse(await unpacked("trial-data"));
  data.places = new Map(data.rows.map((row, place) => [row[0], place]));
  labelOf = (number) => `trial ${number}<br>${wrappedText(data.configs[data.places.get(number)])}`;
  const style = document.createElement("style"), code = document.createElement("script");
  style.textContent = await unpacked("tabulator-style");
  code.textContent = await unpacked("tabulator-packed");
  document.head.prepend(style); document.head.append(code);
  const columns = data.columns.map((name, index) => index)
    .filter((index) => data.rows.some((row) => row[index] !== null && row[index] !== "")).map(columnOf);
  const rows = data.rows.map((row, place) => ({ place, ...Object.fromEntries(row.map((value, i) => [field(i), value])) }));
  table = new Tabulator("#trial-table", {
    data: rows, columns, index: "c0", height: Math.min(560, 96 + 30 * rows.length), layout: "fitData",
    initialSort: columns.some((column) => column.title === "MLUPS") ? [{ column: field(at("MLUPS")), dir: "desc" }] : [], selectableRows: 1, selectableRowsPersistence: false,
    placeholder: "no trial fits", columnHeaderSortMulti: true,
    rowFormatter: (row) => {
      const element = row.getElement(), number = row.getData().c0;
      element.dataset.trial = number; element.tabIndex = 0;
      element.classList.toggle("best", row.getData().place === data.winner);
    },
  });
  await new Promise((done) => table.on("tableBuilt", done));
  document.querySelectorAll("#trial-table .tabulator-col").forEach(sortable);
  // the library puts a box that scrolls, without a role, between a grid and its rows
  document.querySelector("#trial-table .tabulator-tableholder").setAttribute("role", "rowgroup");
  document.querySelector("#trial-table .tabulator-table").setAttribute("role", "presentation");
  table.on("rowClick", (event, row) => select(row.getData().c0));
  table.on("dataFiltered", (filters, found) => {
    byId("shown").textContent = `${found.length} of ${data.rows.length} shown`;
    document.dispatchEvent(new CustomEvent("filtered"));
  });
  byId("trial-table").addEventListener("keydown", walk);
  byId("filter").addEventListener("input", () => table.setFilter((row) => fits(row, byId("filter").value)));
  byId("shown").textContent = `${rows.length} of ${rows.length} shown`;
  byId("csv").addEventListener("click", () => table.download("csv", "trials.csv"));
  byId("json").addEventListener("click", () => save("trials.json", JSON.stringify(shownRows().map(recordOf), null, 1), "application/json"));
  chooser(columns);
}
