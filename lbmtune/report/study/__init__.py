"""The page of a study: one module per figure, from records to plain data to Plotly."""
