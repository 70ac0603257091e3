"""The way in from Python: a private PCA as a scikit-learn estimator."""
