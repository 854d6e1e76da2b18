// the first screen needs neither table nor figures
const begun = async () => {
  document.documentElement.dataset.first = "yes";
  performance.mark("first screen");
  if (byId("trial-data")) { await tabulate(); offer("knob", 0); offer("knob-x", 0); offer("knob-y", 1); }
  await draw();
};
requestAnimationFrame(() => setTimeout(() => begun().then(() => { performance.mark("ready"); document.documentElement.dataset.ready = "yes"; })));
