"""The space of a search: values of knobs, legal configurations, bounds that a study sets."""
