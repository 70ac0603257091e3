"""Streamlit code that pages share."""
