"""Where mechanisms meet data: cells, comparisons and sweeps, kept and resumed by one engine."""
