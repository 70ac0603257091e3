"""Code that runs the dashboard inside a browser; `docs/browser.md` explains publishing."""
