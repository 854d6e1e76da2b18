"""Print studies: before they begin, while they run, finished, and beside each other."""
