"""Results as tables, sentences and figures, from the results alone."""
