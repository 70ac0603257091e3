"""dpviz: see what differential privacy costs a principal component analysis."""

__version__ = "0.1.0"
