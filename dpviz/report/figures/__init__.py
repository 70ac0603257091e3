"""Figures: a tidy table in, a figure out; nothing here computes a result.

`Panel` says how one variant is shown, so that figures know no mechanism by
name. Plotly figures are ``go.Figure``.
"""
