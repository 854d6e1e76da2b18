"""best.json: the document, and the kernel, its domain and its portfolio inside it."""
