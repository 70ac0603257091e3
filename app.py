"""The dashboard's entry: ``python -m dpviz app`` or ``streamlit run app.py``."""

import gc

import streamlit as st

if __name__ == "__main__":  # a page runs
    from pages.ui import shell

    st.set_page_config(
        page_title="dpviz",
        page_icon=shell.TAB_ICON,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    shell.run()
else:  # a server starts
    gc.disable()  # until the server is ready: what is imported stays
    from pages.ui import class_room, first_picture, serving

    app = st.App(
        __file__,
        routes=[*class_room.ROUTES, *first_picture.ROUTES],
        middleware=serving.MIDDLEWARE,
        lifespan=serving.lifespan,
    )
