"""What everything stands on: errors, options, streams, texts, what mechanisms see and give.

Beside it `dpviz.core.metrics` measures what they give.
"""

VERSION = "0.1.0"
"""Of dpviz, as ``dpviz.__version__`` says it."""
