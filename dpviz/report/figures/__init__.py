"""Figures: each takes a tidy table and returns a figure; this package computes no result.

`Panel` holds the colour, marker and dash of one mechanism variant, so that figures need no
mechanism's name. Plotly figures are ``go.Figure``.
"""
