// ---- ways to use the kernel, one at a time
for (const list of document.querySelectorAll('[role="tablist"]')) {
  const tabs = [...list.querySelectorAll('[role="tab"]')];
  const choose = (tab) => {
    for (const one of tabs) {
      const chosen = one === tab;
      one.setAttribute("aria-selected", chosen);
      one.tabIndex = chosen ? 0 : -1;
      byId(one.getAttribute("aria-controls")).hidden = !chosen;
    }
  };
  list.addEventListener("click", (event) => { const tab = event.target.closest('[role="tab"]'); if (tab) choose(tab); });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    choose(next); next.focus();
  });
  choose(tabs[0]);
}

// ---- files that the page carries
function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name; document.body.append(link); link.click(); link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-save]");
  if (!button) return;
  const held = byId(button.dataset.from);
  const text = held.type === "application/json" ? held.textContent : await unpacked(button.dataset.from);
  save(button.dataset.save, text, "application/json");
});
