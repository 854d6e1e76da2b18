// ---- tables of a page that has many: a head sorts, one filter for all
const textOf = (row, place) => row.cells[place].textContent.trim();
function compared(a, b) {
  const [x, y] = [a, b].map((text) => parseFloat(text.replace(/,/g, "")));
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.localeCompare(b, "en");
  return x - y;
}
function sortBy(head) {
  const place = head.cellIndex, body = head.closest("table").tBodies[0];
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [textOf(a, place), textOf(b, place)];
    return x && y ? sign * compared(x, y) : !x - !y; // empty ones come last
  });
  for (const one of head.parentElement.cells) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  body.append(...rows);
}
for (const head of document.querySelectorAll("table.sortable thead th")) {
  const button = document.createElement("button");
  button.type = "button"; button.className = "sort"; button.append(...head.childNodes);
  button.addEventListener("click", () => sortBy(head));
  head.append(button);
}
const rowsOf = (table) => [...table.tBodies[0].rows];
const filtered = [...document.querySelectorAll("table.filtered")];
function filterTables() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean), wanted = byId("verdict").value;
  let shown = 0, all = 0;
  for (const row of filtered.flatMap(rowsOf)) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word)) || Boolean(wanted && row.dataset.standing !== wanted);
    all += 1; shown += !row.hidden;
  }
  for (const table of filtered) table.closest(".table").hidden = rowsOf(table).every((row) => row.hidden);
  byId("shown").textContent = `${shown} of ${all} claims shown`;
}
for (const id of ["filter", "verdict"]) byId(id).addEventListener("input", filterTables);
filterTables();
