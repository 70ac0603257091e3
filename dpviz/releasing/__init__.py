"""One real release: a ledger of what was spent, and noise that is safe on a computer."""
