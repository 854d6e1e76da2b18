// ---- table of trials
const data = JSON.parse(byId("trial-data").textContent);
const table = byId("trial-table"), step = 100;
const columns = data.columns.map((name, index) => index)
  .filter((index) => data.rows.some((row) => row[index] !== null && row[index] !== ""));
const MLUPS = data.columns.indexOf("MLUPS"), OUTCOME = data.columns.indexOf("outcome"), REASON = data.columns.length - 1;
let order = { column: MLUPS, up: false }, limit = step;

function compared(a, b) {
  const x = data.rows[a][order.column], y = data.rows[b][order.column];
  if (x === null || y === null) return (x === null) - (y === null); // missing values come last in both orders
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
heads(); fill();
