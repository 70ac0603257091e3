"""Tables, sentences and figures, computed only from results."""
