"""Every shell line of README and docs is typed into a shell, in order, and ends without error.

The lines run in a folder like a checkout after ``make run``, without our Python on the path, with
no home, and behind a proxy that never answers. A line that needs a network, or more than 20 s, has
a comment with the word "network" or "minutes". The tests check these comments.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpviz.cli import build_parser
from dpviz.cli.browser_edition.lock import read_lock
from dpviz.core.files import user_cache
from tests.e2e.harness import Server, free_port, is_free
from tests.layers import LAYERS
from tools.edition import ready

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
ACTIVATE = ". .venv/bin/activate"

# These commands start a server and do not return, so each has its own test.
SERVERS = ("make run", "python -m http.server --bind 127.0.0.1 --directory build/browser")
# Skip these documented commands, for the reasons given. Seconds were measured on one core.
MINUTES = {
    "make test": "all layers",
    "python -m pytest tests/unit tests/process tests/contract tests/golden": "four layers",
    "python -m dpviz audit all": "every claim is tried: 90 s",
}
MINE = """
import dpviz
import numpy as np


@dpviz.mechanism(claim="pure", release="subspace")
def mine(rows, epsilon, delta, k, rng):
    noisy = rows.T @ rows + rng.laplace(scale=2 / epsilon, size=(rows.shape[1],) * 2)
    return np.linalg.eigh(noisy + noisy.T)[1][:, ::-1][:, :k]
"""
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRAM = re.compile(r"^(?:\$ )?(?:python|make|docker|uv|pip|dpviz|dask|streamlit|git|cp|\.) ")
_PLACEHOLDER = re.compile(r"(?<!cap-drop )(?<![\w${])(?:[A-Z]{2,}[A-Z_]*|my\.csv)(?![\w}=])|\[--")
_INLINE = re.compile(r"(?<!`)`((?:python -m|dpviz|make) [^`]+)`(?!`)")


@dataclass(frozen=True)
class Line:
    """A command as printed on a page, and its comment."""

    page: str
    text: str
    words: str

    @property
    def network(self) -> bool:
        return re.search(r"\bnetwork\b", self.words) is not None

    @property
    def minutes(self) -> bool:
        return re.search(r"\bminutes\b", self.words) is not None

    @property
    def runs(self) -> bool:
        return not (self.network or self.minutes or self.text in SERVERS)


def lines_of(page: str) -> list[Line]:
    """Return the shell lines of a page, with continued lines joined."""
    out = []
    for block in _SHELL.findall((ROOT / page).read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            text, _, words = line.partition(" #")
            if text.strip():
                out.append(Line(page, " ".join(text.split()), words.strip()))
    return out


LINES = [line for page in PAGES for line in lines_of(page)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like a checkout in which ``make run`` has made the environment."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in ROOT.iterdir():
        if path.name not in {".venv", "build", "dist", ".git"}:
            (folder / path.name).symlink_to(path)
    link = folder / ".venv"
    if sys.prefix == sys.base_prefix:
        venv.create(link, system_site_packages=True, symlinks=True)
    else:
        link.mkdir()
        for path in Path(sys.prefix).iterdir():
            if not path.name.startswith(".dpviz"):
                (link / path.name).symlink_to(path)
    for stamp in (".dpviz-run", ".dpviz-dev"):
        (link / stamp).touch()
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a shell there: without our Python, no cache, no network."""
    nowhere = "http://127.0.0.1:9"
    env = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home" / ".cache")}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere)
    return {
        **env,
        **proxies,
        "no_proxy": "127.0.0.1,localhost",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "PIP_NO_INDEX": "1",
        **more,
    }


def begins(page: str, warm: Path) -> list[Line]:
    """Return the lines to type before a page's own: README's activation and a quick Python."""
    return [Line(page, ACTIVATE, ""), Line(page, f"PATH={warm.parent}:$PATH", "")]


def typed(lines: list[Line], folder: Path, **more: str) -> Iterator[tuple[Line, int, str]]:
    """Type lines into one shell; yield each line with its status and error output."""
    notes = folder / "notes"
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir()
    script = "".join(
        f"{{ {line.text}\n}} >{notes}/{n}.out 2>{notes}/{n}.err\necho $? >{notes}/{n}.status\n"
        for n, line in enumerate(lines)
    )
    shell = subprocess.Popen(
        ["bash"], cwd=folder, env=environment(folder, **more), text=True, stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        shell.communicate(script, timeout=120 * len(lines))
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    for n, line in enumerate(lines):
        message = (notes / f"{n}.err").read_text(encoding="utf-8", errors="replace")
        yield line, int((notes / f"{n}.status").read_text()), message


@pytest.mark.parametrize("page", [page for page in PAGES if any(x.runs for x in lines_of(page))])
def test_every_line_of_a_page_runs(page: str, checkout: Path, warm: Path) -> None:
    """Every line runs: README's first by Python itself, other lines by forks with libraries."""
    lines = [line for line in lines_of(page) if line.runs]
    quick = begins(page, warm)
    if page == "README.md":
        assert lines[0] == quick[0]
        lines[2:2] = quick[1:]
    else:
        lines[:0] = quick
    failures = [
        f"{line.text}: status {status}: {said[-600:]}"
        for line, status, said in typed(lines, checkout)
        # A server line that ends with "&" is killed at the end, and may print a traceback then.
        if status != 0 or ("Traceback" in said and not line.text.endswith("&"))
    ]
    assert failures == []


def test_the_examples_of_help_run(checkout: Path, warm: Path) -> None:
    """The examples of ``dpviz --help`` run, except for examples that a page also has.

    A checkout has no ``dpviz`` script, so the tests type the module instead.
    """
    examples = build_parser().format_help().partition("examples:\n")[2].partition("\n\n")[0]
    commands = [line.strip().partition("  ")[0] for line in examples.splitlines()]
    assert "dpviz app" in commands
    shutil.copy(ROOT / "data" / "example.csv", checkout / "mine.csv")
    (checkout / "mine.py").write_text(MINE, encoding="utf-8")
    assert all(one.startswith("dpviz ") for one in commands)
    elsewhere = {line.text for line in LINES if line.runs}
    modules = [f"python -m {one}" for one in commands if one != "dpviz app"]
    typed_here = [one for one in modules if one not in elsewhere]
    assert typed_here
    lines = begins("--help", warm) + [Line("--help", one, "") for one in typed_here]
    failures = [(line.text, said) for line, status, said in typed(lines, checkout) if status]
    assert failures == []


def test_the_environment_is_called_as_readme_says(checkout: Path) -> None:
    """Control: without README's first line `python` is another Python, so the next line fails."""
    first, *rest = [line for line in lines_of("README.md") if line.runs]
    assert first.text == ACTIVATE
    ((line, status, _),) = typed(rest[:1], checkout)
    assert (line.text.startswith("python -m dpviz"), status == 0) == (True, False)


# --------------------------------------------------------------------------- what is marked


def test_no_line_is_marked_in_vain(checkout: Path, warm: Path) -> None:
    """Each line marked "minutes" has a listed reason; each marked "network" needs a network."""
    assert {line.text for line in LINES if line.minutes} == MINUTES.keys() & {
        line.text for line in LINES
    }
    layers = {layer.name: layer.budget for layer in LAYERS}
    assert sum(layers[name] for name in ("unit", "process", "contract", "golden")) > 20
    for line in (line for line in LINES if line.network):
        if line.text.startswith("make "):
            target = line.text.split()[1]
            fresh = ["make", "-n", "-C", str(ROOT), "VENV=nowhere", target]
            text = subprocess.run(fresh, check=True, capture_output=True, text=True).stdout
            assert "pip install" in text, line
        elif line.text.startswith("docker "):
            steps = (ROOT / "Dockerfile").read_text(encoding="utf-8")
            assert "FROM python:" in steps  # Docker downloads this image from a registry.
            assert "pip install" in steps
        elif line.text.startswith("uv pip install"):
            assert "requirements" in line.text
        else:
            *_, (_, status, message) = typed([*begins(line.page, warm), line], checkout)
            assert status == 2, line
            assert "Traceback" not in message, message


def test_every_command_in_a_block_is_marked_as_one() -> None:
    """Only sh and python blocks hold commands, so no command escapes these tests."""
    stray = [
        f"{page}: {line}"
        for page in PAGES
        for kind, block in _FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
        if kind not in {"sh", "python"}
        for line in block.splitlines()
        if _PROGRAM.match(line)
    ]
    assert stray == []
    assert len(LINES) > 25
    vague = [line.text for line in LINES if _PLACEHOLDER.search(line.text)]
    assert vague == []
    assert _PLACEHOLDER.search("python -m dpviz compare my.csv --out DIR")  # control


# --------------------------------------------------------------------------- in sentences


def _known_options(words: list[str]) -> tuple[str, set[str]] | None:
    """Return the program that a command in a sentence names, and its options; None if unknown."""
    if words[0] == "make":
        text = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
        return ("make", set()) if words[1] in targets else None
    module = words[2] if words[0] == "python" else "dpviz"
    if module == "dpviz":
        actions = build_parser()._subparsers
        assert actions is not None
        choices = actions._group_actions[0].choices
        rest = words[3:] if words[0] == "python" else words[1:]
        known_options = dict(choices or {})
        parser = known_options.get(" ".join(rest[:2]), known_options.get(rest[0]))
        if parser is None:
            return None
        if parser._subparsers is not None and len(rest) > 1:  # ledger new is a two-word command.
            commands = parser._subparsers._group_actions[0].choices
            parser = dict(commands or {}).get(rest[1], parser)
        return rest[0], {*parser._option_string_actions, "--plugin"}
    if module == "pytest":
        return "pytest", {"-k"}
    if module == "pip" and words[3] == "install":  # test_packaging.py tests pip's options.
        return "pip", set()
    path = ROOT / Path(*module.split(".")).with_suffix(".py")
    if not path.is_file():
        path = path.with_suffix("") / "__main__.py"
    if not path.is_file():
        return None
    return module, set(re.findall(r'"(--[a-z-]+)"', path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "SECURITY.md"])
def test_commands_in_sentences_exist_with_their_options(page: str) -> None:
    text = _FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    wrong = []
    for command in _INLINE.findall(text):
        words = command.split()
        options = _known_options(words)
        if options is None or {word for word in words if word.startswith("--")} - options[1]:
            wrong.append(command)
    assert wrong == []


def test_a_wrong_command_in_a_sentence_is_found() -> None:
    """Control: the test finds a wrong command or option in a sentence."""
    assert _known_options(["make", "nothing"]) is None
    assert _known_options(["dpviz", "nothing"]) is None
    assert _known_options(["python", "-m", "benchmarks.nothing"]) is None
    options = _known_options(["dpviz", "compare"])
    assert options is not None
    assert "--epsilon" in options[1]
    assert "--nothing" not in options[1]


# --------------------------------------------------------------------------- servers


def _first_answer(words: str, ready_words: str, folder: Path, path: str, **more: str) -> str:
    """Start a server as typed; return its first answer after it reports that it is ready."""
    server = subprocess.Popen(
        ["bash", "-c", words], cwd=folder, env=environment(folder, PYTHONUNBUFFERED="1", **more),
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    assert server.stdout is not None
    answers = []
    try:
        for line in server.stdout:
            answers.append(line)
            if ready_words in line:
                address = re.findall(r"http://[\w.:]+", line)[0]
                plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                with plain.open(address + path, timeout=60) as answer:
                    return str(answer.read().decode())
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        server.stdout.close()
    raise AssertionError(f"{words}: {''.join(answers)}")


def test_make_run_opens_the_dashboard_and_a_signal_to_make_ends_it(checkout: Path) -> None:
    port = free_port()
    env = environment(checkout, STREAMLIT_SERVER_PORT=str(port), STREAMLIT_SERVER_HEADLESS="true")
    log = checkout / "server.log"
    with Server(
        checkout / "app.py", log, env, checkout, port=port, command=["make", "run"]
    ) as server:  # The body starts after the server's first answer.
        os.kill(server.pid, signal.SIGTERM)
        ends, again = time.monotonic() + 2, threading.Event()
        while not is_free(port):
            assert time.monotonic() < ends
            again.wait(0.1)
        while not server.ended:
            assert time.monotonic() < ends + 8
            again.wait(0.1)
        assert server.new_traceback() == ""


def test_the_browser_edition_is_built_and_served(checkout: Path) -> None:
    """The edition builds if its locked files are available, as after the first build."""
    if not is_free(8000):
        pytest.skip("another program has port 8000, which the line in docs/browser.md serves at")
    building, exporting, serving, *_ = lines_of("docs/browser.md")
    assert (building.text, serving.text) == ("make browser-edition", SERVERS[1])
    if ready(read_lock()):
        lines = [Line(building.page, ACTIVATE, ""), building, exporting]
        for line, status, error in typed(lines, checkout, XDG_CACHE_HOME=str(user_cache().parent)):
            assert status == 0, (line, error)
    else:
        (checkout / "build" / "browser").mkdir(parents=True)
        (checkout / "build" / "browser" / "index.html").write_text("dpviz", encoding="utf-8")
    words = f"{ACTIVATE}\n{serving.text}"
    assert "dpviz" in _first_answer(words, "Serving HTTP", checkout, "/")
