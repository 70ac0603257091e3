"""The container's rules, its lock files, and the features that the demo switch turns off."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.deploy_check import copied, environment, instructions, last_stage, read_only

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
STAGE = last_stage(DOCKERFILE)


def locked(name: str) -> dict[str, str]:
    """Return the version of each package in a lock file; each package has at least one hash."""
    text = (ROOT / name).read_text(encoding="utf-8")
    pins = {}
    for block in re.split(r"\n(?=\S)", text.strip()):
        head = re.match(r"([A-Za-z0-9._-]+)==([^ ;\\]+)", block)
        assert head is not None, block.splitlines()[0]
        assert "--hash=sha256:" in block, head[1]
        pins[canonicalize_name(head[1])] = head[2]
    return pins


def test_the_image_is_pinned_slim_and_not_root() -> None:
    images = [rest.split()[0] for word, rest in DOCKERFILE if word == "FROM"]
    assert all(re.fullmatch(r"python:3\.1[123]-slim", image) for image in images)
    assert STAGE[-1][0] == "CMD"
    (user,) = (rest for word, rest in STAGE if word == "USER")
    assert int(user) > 0  # Clusters require a user number, not a name.
    commands = [word for word, _ in STAGE]
    assert commands.index("USER") > max(j for j, word in enumerate(commands) if word == "COPY")


def test_the_image_uses_exec_forms_and_no_secrets() -> None:
    for word, rest in DOCKERFILE:
        assert word not in ("ADD", "MAINTAINER", "ARG"), word
        if word == "CMD":
            assert isinstance(json.loads(rest), list)
        if word == "RUN":
            assert not re.search(r"\b(sudo|curl|wget|apt-get)\b", rest)
    assert not re.search(r"(?i)(password|token|secret)\s*=", str(DOCKERFILE))
    (health,) = (rest for word, rest in STAGE if word == "HEALTHCHECK")
    assert "/_stcore/health" in health


def test_the_image_installs_with_hashes_and_copies_what_the_app_needs(tmp_path: Path) -> None:
    (install,) = (rest for word, rest in DOCKERFILE if word == "RUN" and "pip install" in rest)
    assert "--require-hashes" in install
    copied(STAGE, tmp_path)
    for path in (
        "app.py",
        "LICENSE",
        ".streamlit/config.toml",
        "dpviz/__init__.py",
        "pages/explore.py",
    ):
        assert (tmp_path / path).is_file(), path
    read_only(tmp_path)
    assert not (tmp_path / "app.py").stat().st_mode & 0o222
    for path in [tmp_path, *tmp_path.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)  # This lets pytest delete the folder.


def test_ledgers_lie_on_a_volume_that_a_restart_keeps() -> None:
    folder = environment(STAGE)["DPVIZ_LEDGERS"]
    command = next(rest for word, rest in STAGE if word == "RUN" and folder in rest)
    (user,) = (rest for word, rest in STAGE if word == "USER")
    assert command == f"install -d -o {user} -m 700 {folder}"  # Volumes copy the folder's rights.
    assert not folder.startswith(environment(STAGE)["HOME"])  # HOME exists only in memory.
    # A volume without a name would be deleted with its container, and no one would notice.
    assert "VOLUME" not in [word for word, _ in STAGE]
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert f'volumes: ["ledgers:{folder}"]' in compose
    assert re.search(r"(?m)^volumes:\n  ledgers:$", compose)
    for file in ("Dockerfile", "docs/deploy.md"):
        assert f"-v dpviz-ledgers:{folder}" in (ROOT / file).read_text(encoding="utf-8")


def test_compose_is_as_strict_as_the_docs_say() -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for line in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", "mem_limit:"):
        assert line in text
    assert '"127.0.0.1:' in text  # By default only this machine can connect.


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_locks_pin_what_the_ranges_allow(name: str) -> None:
    pins = locked(name)
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    if "dev" in name:
        groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        waiting = list(groups["dependency-groups"]["dev"])
        while waiting:
            item = waiting.pop()
            if isinstance(item, dict):
                waiting += groups["dependency-groups"][item["include-group"]]
            else:
                requirements.append(Requirement(item))
    for requirement in requirements:
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_locks_name_no_index_and_no_path() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "://" not in text
        assert not re.search(r"(?m)^(-|/|file:)", text)
