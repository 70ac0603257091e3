"""Apply mechanisms to data: cells, comparisons and sweeps, which one engine stores and resumes."""
