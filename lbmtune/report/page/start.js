draw().then(() => { document.documentElement.dataset.ready = "yes"; });
