"""The dashboard's entry: ``python -m dpviz app`` or ``streamlit run app.py``."""

import gc

import streamlit as st

if __name__ == "__main__":  # Streamlit runs this file as the script of a page.
    from pages.ui import shell

    st.set_page_config(
        page_title="dpviz",
        page_icon=shell.TAB_ICON,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    shell.run()
else:  # In this case, a web server imports this file as a module.
    gc.disable()  # Garbage collection only slows the start, as imported objects stay in memory.
    from pages.ui import class_room, first_picture, serving

    app = st.App(
        __file__,
        routes=[*class_room.ROUTES, *first_picture.ROUTES],
        middleware=serving.MIDDLEWARE,
        lifespan=serving.lifespan,
    )
