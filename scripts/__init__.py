"""Scripts of the repository; run them as modules: `python -m scripts.NAME`."""
