"""What everything stands on: errors, options, streams, texts, and what mechanisms see and give."""

VERSION = "0.1.0"
"""Of dpviz, as ``dpviz.__version__`` says it."""
