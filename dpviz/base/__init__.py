"""What everything stands on: parameters, named streams, one BLAS thread, arrays, folders."""
