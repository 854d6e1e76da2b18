"""Published claims: plans of measurements that reproduce them, runs, verdicts and evidence."""
