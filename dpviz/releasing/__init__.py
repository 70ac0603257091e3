"""Publishing: schema, release file and ledger, and a private PCA as an estimator."""
