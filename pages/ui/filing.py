"""A release as it may be read, and its privacy card to be filed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.releasing.outputs import read_release
from dpviz.report.figures.svg import source
from dpviz.report.privacy_card import loadings_svg, suspicion_words, use_words
from dpviz.studies.card import CardOptions, Filed, card
from pages.ui.guard import guard

PARAMS = params_of(CardOptions)


def draw(release: Path, ledger: Path, number: int) -> None:
    """Draw what a kept release says, and what files it.

    Parameters
    ----------
    release, ledger : Path
        Their files.
    number : int
        Of the spend.
    """
    with guard():
        reading = st.container()
        with st.expander("Privacy card, to be filed", icon=":material/badge:"):
            found = _file(release, ledger, number)
        with reading:
            _read(found.card)


def _read(found: Mapping[str, Any]) -> None:
    """Draw what may become of a suspicion, the loadings with their bars, and what survives."""
    st.markdown(f"**{suspicion_words(found['claim']['suspicions'][0])}**")
    words = (
        f"Loadings of {found['k']} released components with 95 % bars; hollow where 0 is as likely"
    )
    st.html(
        f'<img src="{source(loadings_svg(found["use"]))}" alt="{words}" '
        'style="max-width:100%;border-radius:4px">'
    )
    st.markdown(use_words(found["use"], found["k"]))
    with st.expander("Every number of it", icon=":material/table_rows:"):
        use = found["use"]
        table = pd.DataFrame({"feature": use["features"]})
        for at, (vector, bars) in enumerate(zip(use["loadings"], use["bars"], strict=True), 1):
            table[f"component {at}"] = vector
            table[f"± {at}"] = bars
        st.dataframe(table, hide_index=True, alt="Released components with their bars")
        shares = [100 * value / use["total_variance"] for value in use["variances"]]
        st.caption(
            f"Explained variance, % of the released total: "
            f"{', '.join(numeral(share, 3) for share in shares[: found['k']])}. A step between "
            f"variances shorter than {numeral(use['noise_edge'], 3)} is noise."
        )


def _file(release: Path, ledger: Path, number: int) -> Filed:
    """Draw what only people know of a release, and its card to be kept; return the card."""
    kept = read_release(release)
    assumed = kept["assumed_public"]
    # what the release says already is not asked again
    asked = {name: param for name, param in PARAMS.items() if not kept.get(name)}
    places = st.columns(len(asked))
    said = {
        name: place.text_input(
            param.label,
            key=f"card.{name}",
            help=param.help,
            placeholder=param.examples[0],
            persist_state="session",
        )
        for place, (name, param) in zip(places, asked.items(), strict=True)
    }
    edited = st.data_editor(
        pd.DataFrame({"what": assumed, "source": "", "confirmed_by": ""}),
        key=f"card.sources~{number}",
        hide_index=True,
        disabled=["what"],
        alt="Each assumption, from where it is known and who confirmed it",
        column_config={
            "what": st.column_config.TextColumn("Assumed public", width="large"),
            "source": st.column_config.TextColumn("From where", width="medium"),
            "confirmed_by": st.column_config.TextColumn("Confirmed by", width="medium"),
        },
    )
    sources = {
        at: (str(row["source"] or ""), str(row["confirmed_by"] or ""))
        for at, row in enumerate(edited.to_dict("records"), 1)
    }
    made = card(release, ledger=ledger, sources=sources, **said)
    with st.container(horizontal=True):
        for label, content, end, mime in (
            ("Page to print and sign", made.to_html(), "html", "text/html"),
            ("Card for dpviz verify", made.to_json() + "\n", "json", "application/json"),
        ):
            st.download_button(
                label,
                content,
                file_name=f"card-{number:06d}.{end}",
                mime=mime,
                icon=":material/download:",
                on_click="ignore",
                key=f"card.{end}",
            )
    if made.card["unconfirmed"]:
        st.caption(
            f"{len(made.card['unconfirmed'])} assumptions are not confirmed by anybody yet; the "
            "card says so."
        )
    return made
