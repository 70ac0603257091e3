"""Page tests, run by Streamlit's AppTest without a browser."""
