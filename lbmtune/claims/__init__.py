"""Published claims: which configurations stand for them, and what their measurements say."""
