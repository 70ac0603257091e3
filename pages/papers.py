"""Papers: what the four papers claim, answered once, and their experiments redone."""

PAGE = {
    "title": "Papers",
    "icon": ":material/menu_book:",
    "place": 120,
    "group": "Reference",
    "term": "eigenspectrum",
    "own_settings": True,
}

import time

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.base.csv_text import csv_text
from dpviz.base.here import NO_DOWNLOADS, ONE_PROCESS, in_browser
from dpviz.base.number_text import decimals
from dpviz.datasets import remote
from dpviz.errors import DpvizError
from dpviz.figures.reproduction import chart_figure, chart_panels, counts_html, lines_figure
from dpviz.narrative.papers import overall_sentence, reproduction_sentence
from dpviz.narrative.phrases import since_words, time_words
from dpviz.reproduce import (
    MEANINGS,
    PAPERS,
    Agreement,
    Answer,
    Claim,
    Effort,
    Experiment,
    Findings,
    counted,
    drawn,
    experiment,
    experiments,
    heading,
    lines_table,
    markdown,
    shipped,
)
from pages.ui import controls, parts, reproduction_cache, shell, state
from pages.ui.guard import guard

current = shell.through_entry()

RUNNING = "papers_running"  # the experiments that the user has asked for in this session

FINAL = "final"
WANTED, FAILED = "papers_wanted", "papers_failed"  # a download asked for, and one that failed

ANSWERS = {
    Answer.REPRODUCED: "✓ reproduced",
    Answer.IN_PART: "◐ reproduced in part",
    Answer.STAND_IN: "◇ reproduced on a stand-in",
    Answer.OTHER_REASON: "✓? reproduced for another reason",
    Answer.BOUND: "≤ holds as an upper bound only",
    Answer.NO_DIFFERENCE: "≈ no difference",
    Answer.ORDER: "↕ order only",
    Answer.FEW_DRAWS: "? not enough draws",
    Answer.NOT_REPRODUCED: "✗ not reproduced",
    Answer.NOT_HERE: "– not reproducible here",
    Answer.CONSTRUCTION: "= by construction",
    Answer.PENDING: "… not yet measured",
}
MARKS = {
    Agreement.AGREES: "✓ agrees",
    Agreement.DIFFERS: "✗ differs",
    Agreement.CANNOT_TELL: "? cannot tell",
    Agreement.READING: "another reading",
    Agreement.ADDED: "not reported",
    Agreement.NOT_MEASURED: "not measured",
    Agreement.ABSENT: "data absent",
    Agreement.PENDING: "not yet measured",
}


def overview() -> None:
    """Show how many claims of each paper have each answer; each paper's sentence is behind it."""
    found = [one for item in experiments().values() if (one := shipped(item)) is not None]
    claims: dict[str, list[Claim]] = {name: [] for name in PAPERS}
    for one in found:
        claims[one.experiment.info.paper].extend(one.claims)
    together = [claim for some in claims.values() for claim in some]
    if together:
        given = list(counted(together))
        rows = {name: [counted(some).get(a, 0) for a in given] for name, some in claims.items()}
        st.markdown(overall_sentence(together))
        st.html(counts_html([ANSWERS[answer] for answer in given], rows))
    told = "Each paper in a sentence, and what the answers mean"
    with st.expander(told, icon=":material/help:", expanded=False):
        st.markdown("\n".join(f"- **{name}.** {paper.sentence}" for name, paper in PAPERS.items()))
        st.markdown("\n".join(f"- **{answer}**: {text}" for answer, text in MEANINGS.items()))
        st.markdown(
            "Each experiment runs with its paper's settings; the table, epsilon and k set "
            "elsewhere play no part here."
        )


def introduce(chosen: Experiment) -> None:
    """Say what the paper did."""
    st.header(heading(chosen), anchor="experiment")
    st.caption(chosen.info.about)


def details(chosen: Experiment) -> None:
    """Say what is not private, how the paper did it, and what was chosen here."""
    info = chosen.info
    if info.cautions:
        with st.container(border=True):
            st.markdown("\n".join(f":material/gpp_maybe: {text}\n" for text in info.cautions))
    left, right = st.columns(2)
    with left.expander("What the paper states", icon=":material/article:", expanded=False):
        st.markdown("\n".join(f"- {item}" for item in info.settings))
        if info.url:
            st.markdown(f"[The paper]({info.url})")
    with right.expander("What was chosen here", icon=":material/rule:", expanded=False):
        st.markdown("\n".join(f"- {item}" for item in info.choices) or "Nothing had to be chosen.")


def data_needed(chosen: Experiment) -> None:
    """Say which data sets are at hand, and offer to fetch the others."""
    for key in chosen.data():
        item = remote.sets()[key]
        if remote.at_hand(key):
            st.caption(f":material/database: {item.label}: at hand. {item.citation}")
            continue
        if in_browser():
            st.info(f"{item.label}: {NO_DOWNLOADS}", icon=":material/cloud_off:")
            continue
        st.info(remote.missing(key), icon=":material/cloud_off:")
        place = st.empty()
        if st.session_state.get(WANTED) == key:
            del st.session_state[WANTED]
            fetch(key, place)
        elif st.session_state.get(FAILED, ("",))[0] == key:
            st.error(st.session_state[FAILED][1], icon=":material/error:")
        with place:
            st.button(
                f"Download {item.label}",
                key=f"papers.fetch.{key}",
                icon=":material/download:",
                on_click=want,
                args=(key,),
            )


def want(key: str) -> None:
    """Remember what to download; the page then shows how far it is."""
    st.session_state[WANTED] = key
    st.session_state.pop(FAILED, None)


def fetch(key: str, place: DeltaGenerator) -> None:
    """Download a data set, showing how far it is; a failure stays until the next attempt."""
    bar = place.progress(0.0, "Downloading")

    def show(done: int, total: int | None) -> None:
        bar.progress(min(done / total, 1.0) if total else 0.0, f"{decimals(done / 1e6, 1)} MB")

    try:
        remote.fetch(key, progress=show)
    except DpvizError as error:
        st.session_state[FAILED] = (key, str(error))
    st.rerun()


def run(chosen: Experiment, effort: Effort) -> None:
    """Run what is missing, showing what is there after each part."""
    token = (chosen.key, str(effort))
    running = st.session_state.setdefault(RUNNING, [])
    kept = reproduction_cache.kept(chosen, effort)
    complete = kept.progress.done == kept.progress.total
    progress = st.empty()
    if not complete and token not in running:
        with progress.container():
            offer(chosen, effort, kept.progress.done, kept.progress.total)
    place = st.empty()
    if complete or token not in running:
        ready = shipped(chosen) if not kept.progress.done else None
        with place.container():
            if ready is None:
                show(kept.reproduction)
            else:
                st.caption(
                    f":material/inventory_2: {ready.words}: results that "
                    "ship with the package."
                    + ("" if ready.current else " The experiment's code has changed since.")
                )
                show(ready)
        return
    with progress.container():
        st.button(
            "Stop",
            key="papers.stop",
            icon=":material/stop:",
            on_click=running.remove,
            args=(token,),
        )
        bar = st.progress(0.0)
    now, last, since = kept.progress, kept.reproduction, time.monotonic()

    def tell() -> None:
        words = time_words(now.done, now.total, now.left)
        words += since_words(time.monotonic() - since)
        bar.progress(now.done / max(now.total, 1), words)

    for step in reproduction_cache.reproduction_steps(chosen, effort, tell):
        # Every part is kept on disk: a run that is stopped here goes on from here.
        now, last, since = step.progress, step.reproduction, time.monotonic()
        tell()
        often = reproduction_cache.shown_every(now.total)
        if now.done and (now.done == now.total or now.done % often == 0):
            with place.container():
                show(last, stage=str(now.done))
    progress.empty()
    place.empty()
    running.remove(token)
    with place.container():
        show(last)


def offer(chosen: Experiment, effort: Effort, done: int, total: int) -> None:
    """Offer to run, or to go on with a run that was stopped."""
    token = (chosen.key, str(effort))

    def begin() -> None:
        st.session_state[RUNNING].append(token)

    word = "Run" if shipped(chosen) is None else "Run it again here"
    if done:
        word = f"Go on ({done} of {total} parts done)"
    st.button(
        word, key="papers.run", type="secondary", icon=":material/play_arrow:", on_click=begin,
        disabled=total == 0,
    )  # fmt: skip
    if in_browser():
        st.caption(ONE_PROCESS)
    if total == 0:
        st.caption("Nothing can be run: none of its data is at hand.")


def show(found: Findings, *, stage: str = FINAL) -> None:
    """Draw what has been found so far; each stage of a run has elements of its own."""
    points = found.points
    if points.empty:
        reported_only(found)
        return
    st.markdown(reproduction_sentence(found))
    answers(found.claims)
    for chart in drawn(found):
        st.markdown(f"**{chart.title}**")
        # a chart for each panel: they stand below each other on a phone
        panels = chart_panels(points, chart)
        places = st.columns(min(len(panels), 2))
        for number, panel in enumerate(panels):
            places[number % len(places)].plotly_chart(
                chart_figure(points, chart, [panel]),
                key=f"papers.{chart.name}.{number}.{stage}",
                alt=f"{chart.title}, {panel}: {chart.y_label} against {chart.x_label}",
            )
    if drawn(found):
        st.caption("Means, with the 95 % confidence interval of each.")
    judged = [line for line in found.lines if line.agreement is not Agreement.READING]
    figure = lines_figure(judged)
    if figure is not None:
        st.markdown("**Reported beside measured**")
        st.plotly_chart(figure, key=f"papers.lines.{stage}", alt="Reported and measured numbers")
        st.caption(
            "Hollow: reported, with the paper's error. Filled: measured, with the 95 % "
            "confidence interval of the mean. Each row is divided by its reported number."
        )
    lines(found)
    if stage == FINAL:
        take_away(found)


def answers(claims: list[Claim]) -> None:
    """Draw the printed claims, each with its one answer and why."""
    if not claims:
        return
    shown = pd.DataFrame(
        {
            "Claim": [f"**{claim.item}**  \n{claim.place}" for claim in claims],
            "Answer": [f"{ANSWERS[claim.answer]}" for claim in claims],
            "Why": [claim.reason for claim in claims],
        }
    )
    st.table(shown, border="horizontal", hide_index=True, alt="The printed claims, answered")


def reported_only(found: Findings) -> None:
    """Show what the paper reports before anything has been measured."""
    st.caption("Nothing has been measured yet. What the paper reports:")
    answers(found.claims)
    lines(found)


def lines(found: Findings) -> None:
    """Draw every number by data set: those of the paper, other readings, and what was added."""
    table = lines_table(found)
    aside = table["agreement"].isin([Agreement.ADDED, Agreement.READING])
    for some, title, icon in (
        (table[~aside], "The paper's numbers and statements, by data set", "fact_check"),
        (table[aside], "Other readings and what was measured in addition", "add_chart"),
    ):
        if not some.empty:
            with st.expander(f"{title} ({len(some)})", icon=f":material/{icon}:", expanded=False):
                tables(some)


def tables(table: pd.DataFrame) -> None:
    """Draw lines as one table for each data set or theorem."""
    for panel in dict.fromkeys(table["panel"]):
        here = table[table["panel"] == panel]
        shown = pd.DataFrame(
            {
                "What": [
                    f"{item}  \n**{MARKS[Agreement(agreement)]}**" + (f". {note}" if note else "")
                    for item, agreement, note in zip(
                        here["item"], here["agreement"], here["note"], strict=True
                    )
                ],
                "Reported": here["reported"].replace("", "–"),
                "Measured": here["measured"].replace("", "–"),
            }
        )
        st.markdown(f"**{panel}**")
        st.table(shown, border="horizontal", hide_index=True, alt=f"Numbers of {panel}")


def take_away(found: Findings) -> None:
    """Offer the numbers, the report and the command."""
    key = found.experiment.key
    row = st.container(horizontal=True, key="papers.take")
    row.download_button(
        "Reported and measured (CSV)",
        lambda: csv_text(lines_table(found)),
        file_name=f"{key}-lines.csv",
        on_click="ignore",
        key="papers.lines.csv",
        icon=":material/download:",
    )
    row.download_button(
        "Every measured point (CSV)",
        lambda: csv_text(found.points),
        file_name=f"{key}-points.csv",
        on_click="ignore",
        key="papers.points.csv",
        icon=":material/download:",
    )
    row.download_button(
        "Report (Markdown)",
        lambda: markdown(found, level=1),
        file_name=f"{key}.md",
        on_click="ignore",
        key="papers.md",
        icon=":material/download:",
    )
    parts.reproduce_command(found)


st.title("Papers: what they report, and what we measure", anchor=False)
overview()
left, right = st.columns([2, 1])
with left:
    controls.setting("experiment", "papers")
with right:
    controls.setting("effort", "papers")
with guard():
    picked = experiment(state.get("experiment", "papers"))
    introduce(picked)
    run(picked, Effort(state.get("effort", "papers")))
    details(picked)
    data_needed(picked)
