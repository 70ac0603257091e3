"""The browser edition: a folder of static files that runs the dashboard in a visitor's browser."""
