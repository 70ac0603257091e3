"""Foundations of every package: errors, options, streams, texts, inputs and results.

`dpviz.core.metrics` measures the utility of releases.
"""

VERSION = "0.1.0"
"""Version of dpviz, as in ``dpviz.__version__``."""
