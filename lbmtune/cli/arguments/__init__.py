"""Arguments and options that verbs share."""
