"""The only Streamlit code that pages share."""
