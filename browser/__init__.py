"""What makes the dashboard run inside a browser; `docs/browser.md` says how it is published."""
