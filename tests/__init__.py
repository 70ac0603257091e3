"""Tests of dpviz; a package so that one test layer can import another layer's helpers."""
