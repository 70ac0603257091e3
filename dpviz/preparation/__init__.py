"""From a table to what mechanisms may see: bounded rows, moments, and what was assumed public."""
