"""What each mechanism promises, what holds, and the evidence, all of it rerun on demand."""
