"""Tests of dpviz; a package so that one layer can import another's harness."""
