"""The page that compares several studies."""
