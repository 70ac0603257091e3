"""Papers: what the four papers claim, answered once, and their experiments redone."""

PAGE = {
    "title": "Papers",
    "icon": ":material/menu_book:",
    "place": 120,
    "group": "Reference",
    "term": "eigenspectrum",
    "own_settings": True,
}

import math

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.core.errors import DpvizError
from dpviz.core.files import csv_text
from dpviz.core.number_text import decimals
from dpviz.core.platform import NO_DOWNLOADS, ONE_PROCESS, in_browser
from dpviz.datasets import remote
from dpviz.papers import all_shipped, experiment
from dpviz.papers.experiment import Effort, Experiment
from dpviz.papers.report import (
    PAPERS,
    command,
    drawn,
    lines_table,
    markdown,
    printing_order,
    reproduction_sentence,
    runs,
)
from dpviz.papers.run import Findings, absent_data
from dpviz.papers.said import MEANINGS, Claim
from dpviz.papers.shipped import shipped
from dpviz.report.figures.reproduction import (
    chart_figure,
    chart_panels,
    claims_html,
    counts_of,
    exhibit_place,
    exhibit_rows,
    key_html,
    paper_html,
    table_figure,
)
from dpviz.studies.reproduce import Reproduced, steps
from pages.ui import controls, limits, parts, shell, state
from pages.ui.ask import ask, store
from pages.ui.guard import guard

current = shell.through_entry()

FINAL = "final"
YIELDS = "What would yield each printed figure, with an interval"
WANTED, FAILED = "papers_wanted", "papers_failed"  # a download asked for, and one that failed


# On a phone the exhibit that a square opens stands before all squares.
_EXHIBIT_FIRST = """<style>@media (max-width: 640px) {
  [data-testid="stColumn"]:has(.st-key-papers-exhibit) { order: -1; }
}</style>"""


def overview(shown: Experiment) -> None:
    """Draw each paper as a bar and a grid of its claims; those of the exhibit are outlined."""
    found = all_shipped()
    papers = {name: printing_order(found, name) for name in PAPERS}
    most = max(len(claims) for claims in papers.values())
    own = [
        claim.key for claims in papers.values() for claim, item in claims if item.key == shown.key
    ]
    asked = state.get("claim", "papers")
    opened = asked if asked in own else ""  # of another experiment it opens nothing
    st.html(
        _EXHIBIT_FIRST
        + key_html()
        + "".join(
            paper_html(
                name,
                [
                    (
                        claim,
                        f"papers?v=1&experiment={item.key}&claim={claim.key}",
                        item.key == shown.key and opened in ("", claim.key),
                    )
                    for claim, item in claims
                ],
                most,
            )
            for name, claims in papers.items()
        )
    )


def answer() -> str:
    """Return how many claims hold up."""
    counts = counts_of([claim for one in all_shipped() for claim in one.claims])
    good, part, bad, untested = counts.values()
    return (
        f"Of **{sum(counts.values())}** claims **{good}** are reproduced, **{part}** hold in part "
        f"or with limits, **{bad}** are not reproduced and **{untested}** cannot be tested here."
    )


def meanings() -> None:
    """Show each paper in a sentence, and what the answers mean."""
    told = "Each paper in a sentence, and what the answers mean"
    with st.expander(told, icon=":material/help:", expanded=False):
        st.markdown("\n".join(f"- **{name}.** {paper.sentence}" for name, paper in PAPERS.items()))
        st.markdown("\n".join(f"- **{answer}**: {text}" for answer, text in MEANINGS.items()))
        st.markdown(
            "Each experiment runs with its paper's settings; the table, epsilon and k set "
            "elsewhere play no part here."
        )


def exhibit(found: Findings, stage: str) -> None:
    """Draw the paper's own and ours in the same axes; what is neither a table has charts."""
    info, rows = found.experiment.info, exhibit_rows(found.claims)
    charts = drawn(found)
    place, note, alt = info.place, "", charts[0].title if charts else "printed and measured"
    if info.frames and charts:
        figure = chart_figure(found.points, charts[0], frames=info.frames)
        note = (
            "The printed frames with our curves in them: means with 95 % intervals. Legend as "
            f"printed: {', '.join(info.legend)}."
        )
    elif len(rows) > 2:
        place, figure = exhibit_place(place, found.claims), table_figure(rows)
    elif charts:
        figure = chart_figure(found.points, charts[0], chart_panels(found.points, charts[0])[:2])
    else:
        return
    st.markdown(f"## {place}")
    st.plotly_chart(figure, key=f"papers.exhibit.{stage}", alt=alt)
    st.caption(note)


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


def run(chosen: Experiment, effort: Effort, beside: DeltaGenerator) -> None:
    """Show what is known of an experiment, and offer to run what is missing.

    Every part is kept on disk at once: a run that is stopped goes on from there.
    """
    with beside:
        picture, line = st.empty(), st.container()
    place = st.empty()

    def draw(found: Reproduced) -> None:
        show(found.found, picture, place, stage=str(found.progress.done))

    options = {
        "experiment": chosen.key,
        "quick": effort is Effort.QUICK,
        "absent": absent_data(chosen),
    }
    how = {"cache": store(public=True), "apart": limits.serving()}
    if limits.caps().public:  # it runs no experiments, and shows those that were run before
        found = next(steps(**options, **how))
    else:
        with line:
            found = ask(
                steps,
                options,
                draw=draw,
                saying="Running",
                aside=how,
                begin=False,
                seconds=math.inf,
            )
            if in_browser():
                st.caption(ONE_PROCESS)
    ready = None if found.progress.done else shipped(chosen)
    show(found.found if ready is None else ready, picture, place)
    with line:
        if ready is not None:
            st.caption(
                f":material/inventory_2: {ready.words}: results that ship with the package."
                + ("" if ready.current else " The experiment's code has changed since.")
            )
        if found.progress.total == 0:
            st.caption("Nothing can be run: none of its data is at hand.")


def show(
    found: Findings, picture: DeltaGenerator, place: DeltaGenerator, *, stage: str = FINAL
) -> None:
    """Draw what has been found so far; each stage of a run has elements of its own."""
    with picture.container():
        if found.points.empty:
            st.caption("Nothing has been measured yet. What the paper says is listed below.")
        else:
            exhibit(found, stage)
            st.markdown(reproduction_sentence(found))
    with place.container():
        claims(found, stage)


def claims(found: Findings, stage: str) -> None:
    """Draw every claim of an exhibit, and what was measured for it."""
    points = found.points
    if told := runs(found):
        st.markdown(told[0])
        with st.expander(YIELDS, icon=":material/function:", expanded=False):
            st.markdown("\n".join(f"- {line}" for line in told[1:]))
    if found.claims:
        here, opened = found.experiment.info.place, state.get("claim", "papers")

        def place(claim: Claim) -> tuple[bool, bool]:
            return claim.key != opened, claim.place != here

        st.html(claims_html(sorted(found.claims, key=place), opened))
    if drawn(found):
        with st.expander("All that was measured", icon=":material/bar_chart:", expanded=False):
            curves(found, stage)
    if stage == FINAL and not points.empty:
        take_away(found)


def curves(found: Findings, stage: str) -> None:
    """Draw every chart of an experiment, a panel each."""
    for chart in drawn(found):
        st.markdown(f"**{chart.title}**")
        # a chart for each panel: they stand below each other on a phone
        panels = chart_panels(found.points, chart)
        places = st.columns(min(len(panels), 2))
        for number, panel in enumerate(panels):
            places[number % len(places)].plotly_chart(
                chart_figure(found.points, chart, [panel]),
                key=f"papers.{chart.name}.{number}.{stage}",
                alt=f"{chart.title}, {panel}: {chart.y_label} against {chart.x_label}",
            )
    st.caption("Means, with the 95 % confidence interval of each.")


def take_away(found: Findings) -> None:
    """Offer the numbers, the report and the command."""
    key = found.experiment.key
    row = st.container(horizontal=True, key="papers.take")
    for label, make, end in (
        ("Reported and measured (CSV)", lambda: csv_text(lines_table(found)), "-lines.csv"),
        ("Every measured point (CSV)", lambda: csv_text(found.points), "-points.csv"),
        ("Report (Markdown)", lambda: markdown(found, level=1), ".md"),
    ):
        parts.download(label, make, key + end, f"papers.{end[1:]}", place=row)
    st.caption("The same numbers from the command line:")
    parts.copyable(command(found))


parts.question("Do the papers' results hold up?")
parts.lead(answer(), "Select a square to open its exhibit.")
with guard():
    grid, beside = st.columns(2, gap="medium")
    with beside, st.container(key="papers-exhibit"):
        controls.setting("experiment", "papers")
    picked = experiment(state.get("experiment", "papers"))
    with grid:
        overview(picked)
    run(picked, Effort(state.get("effort", "papers")), beside)
    controls.setting("effort", "papers")
    st.caption(picked.info.about)
    details(picked)
    data_needed(picked)
meanings()
