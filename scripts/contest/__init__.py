"""A contest of search strategies on recorded sets, replayed without a device."""
