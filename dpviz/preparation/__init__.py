"""From a table to the inputs of mechanisms: bounded rows, moments, assumed public facts."""
