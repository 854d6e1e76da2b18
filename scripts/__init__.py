"""Scripts of the repository; run them as modules: `python -m scripts.NAME` or `python -m scripts.TOPIC.NAME`."""
