"""The values that pass between rooms: problem, budget, moments, allocation, release."""
