"""Pages from records alone: a study, claims, a profile, errors of the model. Plotly and Jinja are imported lazily."""
