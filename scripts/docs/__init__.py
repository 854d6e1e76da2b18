"""Scripts that write pages and pictures of the documents from the code."""
