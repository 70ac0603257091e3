"""Papers: verdicts on the claims of four papers, and their experiments repeated."""

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
    NOT_REPRODUCED,
    chart_figure,
    chart_panels,
    claim_sentence,
    claims_html,
    counts_of,
    exhibit_place,
    exhibit_rows,
    key_html,
    kind_of,
    order_sentence,
    paper_html,
    table_figure,
)
from dpviz.studies.reproduce import Reproduced, steps
from pages.ui import controls, limits, parts, shell, state
from pages.ui.ask import ask, store
from pages.ui.guard import guard

current = shell.through_entry()

FINAL = "final"
YIELDS = "Settings that would yield each printed figure, with their intervals"
WANTED, FAILED = "papers_wanted", "papers_failed"  # One is a requested download, one a failed one.


# On a phone, show the opened figure or table above the squares that open it.
_EXHIBIT_FIRST = """<style>@media (max-width: 640px) {
  [data-testid="stColumn"]:has(.st-key-papers-exhibit) { order: -1; h2 { padding-top: 0; } }
}</style>"""


def overview(paper: Experiment) -> None:
    """Draw each paper as a bar and a grid of claims; outline the claims of the open experiment."""
    findings = all_shipped()
    papers = {name: printing_order(findings, name) for name in PAPERS}
    most = max(len(claims) for claims in papers.values())
    own = [
        claim.key for claims in papers.values() for claim, item in claims if item.key == paper.key
    ]
    key = state.get("claim", "papers")
    open_key = key if key in own else ""  # A claim of another experiment opens no row here.
    st.html(
        _EXHIBIT_FIRST * bool(key)
        + key_html()
        + "".join(
            paper_html(
                name,
                [
                    (
                        claim,
                        f"papers?v=1&experiment={item.key}&claim={claim.key}",
                        item.key == paper.key and open_key in ("", claim.key),
                    )
                    for claim, item in claims
                ],
                most,
            )
            for name, claims in papers.items()
        )
    )


def answer() -> str:
    """Return how many claims are reproduced."""
    counts = counts_of([claim for one in all_shipped() for claim in one.claims])
    good, part, bad, rest = counts.values()
    return (
        f"Of **{sum(counts.values())}** claims **{good}** are reproduced, **{part}** hold in part "
        f"or with limits, **{bad}** are not reproduced and **{rest}** cannot be tested here."
    )


def open_failing() -> None:
    """Open the next claim that is not reproduced, in the order of the papers."""
    ordered = [one for name in PAPERS for one in printing_order(all_shipped(), name)]
    failing = [
        (item.key, claim.key) for claim, item in ordered if kind_of(claim.answer) == NOT_REPRODUCED
    ]
    now = (state.get("experiment", "papers"), state.get("claim", "papers"))
    place = failing.index(now) + 1 if now in failing else 0
    for name, key in zip(("experiment", "claim"), failing[place % len(failing)], strict=True):
        state.put(name, key, "papers")


def meanings() -> None:
    """Show each paper in a sentence, and the meaning of the answers."""
    label = "Summaries of the papers, and meanings of the answers"
    with st.expander(label, icon=":material/help:", expanded=False):
        st.markdown("\n".join(f"- **{name}.** {paper.sentence}" for name, paper in PAPERS.items()))
        st.markdown("\n".join(f"- **{answer}**: {text}" for answer, text in MEANINGS.items()))
        st.markdown(
            "Each experiment uses its paper's settings. The table, epsilon and k of other "
            "pages have no effect here."
        )


def exhibit(result: Findings, stage: str) -> None:
    """Draw the paper's results and ours in the same axes: a printed chart, a table, or ours."""
    info, rows = result.experiment.info, exhibit_rows(result.claims)
    charts, counts, key = drawn(result), reproduction_sentence(result), state.get("claim", "papers")
    said = next((claim_sentence(one) for one in result.claims if one.key == key), counts)
    place, note, alt = info.place, "", charts[0].title if charts else "printed and measured values"
    if info.frames and charts:
        figure = chart_figure(result.points, charts[0], frames=info.frames)
        note = (
            "The paper's charts with our curves added: means with 95 % intervals. Legend of the "
            f"paper: {', '.join(info.legend)}."
        )
    elif len(rows) > 2:
        place, figure = exhibit_place(place, result.claims), table_figure(rows)
        if place != info.place and said == counts:  # Numbers of one quantity can be ordered.
            said, note = order_sentence(rows), counts
    elif charts:
        figure = chart_figure(result.points, charts[0], chart_panels(result.points, charts[0])[:2])
    else:
        st.markdown(said)
        return
    st.markdown(f"## {place}")
    st.markdown(said)
    parts.plot(figure, key=f"papers.exhibit.{stage}", alt=alt)
    st.caption(note)


def details(paper: Experiment) -> None:
    """State what is not private, what the paper did, and what we chose here."""
    info = paper.info
    if info.cautions:
        with st.container(border=True):
            st.markdown("\n".join(f":material/gpp_maybe: {text}\n" for text in info.cautions))
    left, right = st.columns(2)
    with left.expander("What the paper states", icon=":material/article:", expanded=False):
        st.markdown("\n".join(f"- {item}" for item in info.settings))
        if info.url:
            st.markdown(f"[The paper]({info.url})")
    with right.expander("What we had to choose", icon=":material/rule:", expanded=False):
        st.markdown("\n".join(f"- {item}" for item in info.choices) or "No choice was left to us.")


def data_needed(paper: Experiment) -> None:
    """State which data sets are available, and offer to download the others."""
    for key in paper.data():
        item = remote.sets()[key]
        if remote.at_hand(key):
            st.caption(f":material/database: {item.label}: available. {item.citation}")
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
    """Remember the requested download; the page then shows its progress."""
    st.session_state[WANTED] = key
    st.session_state.pop(FAILED, None)


def fetch(key: str, place: DeltaGenerator) -> None:
    """Download a data set and show the progress; report a failure until the next attempt."""
    bar = place.progress(0.0, "Downloading")

    def show(size: int, total: int | None) -> None:
        bar.progress(min(size / total, 1.0) if total else 0.0, f"{decimals(size / 1e6, 1)} MB")

    try:
        remote.fetch(key, progress=show)
    except DpvizError as error:
        st.session_state[FAILED] = (key, str(error))
    st.rerun()


def run(paper: Experiment, effort: Effort, beside: DeltaGenerator) -> None:
    """Show the known results of an experiment, and offer to run the missing parts.

    Every part is stored on disk at once, so that a stopped run continues with the next part.
    """
    with beside:
        picture, line = st.empty(), st.container()
    place = st.empty()

    def draw(answer: Reproduced) -> None:
        show(answer.found, picture, place, stage=str(answer.progress.done))

    quick, absent = effort is Effort.QUICK, absent_data(paper)
    options = {"experiment": paper.key, "quick": quick, "absent": absent}
    how = {"cache": store(public=True), "apart": limits.serving()}
    if limits.caps().public:  # A public server computes nothing and shows only stored results.
        answer = next(steps(**options, **how))
    else:
        with line:
            answer = ask(
                steps, options, draw=draw, saying="Running", aside=how, begin=False,
                seconds=math.inf,
            )  # fmt: skip
            if in_browser():
                st.caption(ONE_PROCESS)
    ready = None if answer.progress.done else shipped(paper)
    show(answer.found if ready is None else ready, picture, place)
    with line:
        if ready is not None:
            st.caption(
                f":material/inventory_2: {ready.words}: these results come with "
                "dpviz."
                + ("" if ready.current else " Since then the experiment's code has changed.")
            )
        if answer.progress.total == 0:
            st.caption("This experiment cannot run: none of its data is available.")


def show(
    findings: Findings, picture: DeltaGenerator, place: DeltaGenerator, *, stage: str = FINAL
) -> None:
    """Draw the results so far, with separate elements for each stage of a run."""
    with picture.container():
        if findings.points.empty:
            st.caption("Nothing has been measured yet. The paper's claims are listed below.")
        else:
            exhibit(findings, stage)
    with place.container():
        claims(findings, stage)


def claims(findings: Findings, stage: str) -> None:
    """Draw every claim of an experiment, with the measured values."""
    points = findings.points
    if lines := runs(findings):
        st.markdown(lines[0])
        with st.expander(YIELDS, icon=":material/function:", expanded=False):
            st.markdown("\n".join(f"- {line}" for line in lines[1:]))
    if findings.claims:
        here, open_key = findings.experiment.info.place, state.get("claim", "papers")

        def place(claim: Claim) -> tuple[bool, bool]:
            return claim.key != open_key, claim.place != here

        st.html(claims_html(sorted(findings.claims, key=place), open_key))
    if drawn(findings):
        with st.expander("All measurements", icon=":material/bar_chart:", expanded=False):
            curves(findings, stage)
    if stage == FINAL and not points.empty:
        take_away(findings)


def curves(findings: Findings, stage: str) -> None:
    """Draw every chart of an experiment, one figure per panel."""
    for chart in drawn(findings):
        st.markdown(f"**{chart.title}**")
        # Draw each panel as a chart of its own, because a phone shows panels below each other.
        panels = chart_panels(findings.points, chart)
        places = st.columns(min(len(panels), 2))
        for number, panel in enumerate(panels):
            parts.plot(
                chart_figure(findings.points, chart, [panel]),
                place=places[number % len(places)],
                key=f"papers.{chart.name}.{number}.{stage}",
                alt=f"{chart.title}, {panel}: {chart.y_label} against {chart.x_label}",
            )
    st.caption("Means with 95 % confidence intervals.")


def take_away(findings: Findings) -> None:
    """Offer downloads of the numbers and the report, and show the command."""
    key = findings.experiment.key
    row = st.container(horizontal=True, key="papers.take")
    for label, make, end in (
        ("Reported and measured (CSV)", lambda: csv_text(lines_table(findings)), "-lines.csv"),
        ("Every measured point (CSV)", lambda: csv_text(findings.points), "-points.csv"),
        ("Report (Markdown)", lambda: markdown(findings, level=1), ".md"),
    ):
        parts.download(label, make, key + end, f"papers.{end[1:]}", place=row)
    st.caption("The same numbers from the command line:")
    parts.copyable(command(findings))


parts.question("Do the papers' results hold up?")
parts.lead(answer(), "Open a claim that fails", state.on_change(open_failing))
with guard():
    grid, beside = st.columns(2, gap="medium")
    with beside, st.container(key="papers-exhibit"):
        controls.setting("experiment", "papers")
    choice = experiment(state.get("experiment", "papers"))
    with grid:
        overview(choice)
    run(choice, Effort(state.get("effort", "papers")), beside)
    controls.setting("effort", "papers")
    st.caption(choice.info.about)
    details(choice)
    data_needed(choice)
meanings()
