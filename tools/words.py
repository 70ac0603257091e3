"""Find relapses into private idiom and long sentences: ``python -m tools.words``.

The tool reads the sentences that differ from the main branch (on main: from the last commit), and
the subjects of the commits since. It skips sentences that only moved or were wrapped again.
``--commit-msg FILE`` checks one message, as a git hook does, and ``--all`` checks every sentence.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.changes import base, changed
from tools.sentences import ROOT, Sentence, git, sentences

LIMITS = {"interface": 20, "errors": 20, "docs": 25}
"""The most words of a sentence, for each surface that has a limit."""
SUBJECT = 72
INSTEAD = {
    r"(leaves?|leaving|stays?|in) the house": "publish; internal, do not share",
    r"(is|are) paid for|\bbuys\b": "uses part of the budget",
    r"noise for nothing": "adds more noise than its guarantee requires",
    r"free lunch": "at no privacy cost",
    r"favou?red directions?": "low-noise directions",
    r"(row|rows') bounds?": "row-norm bound",
    r"lines? of names": "header row",
    r"(made-up|invented) \w+": "synthetic",
    r"tak(e|es|ing) \w+ along|take along": "download",
    r"hang(s|ing)? on\b(?! a)": "depends on",
    r"at hand": "available",
    r"anew": "again",
    r"stands? in": "is listed in",
    r"told apart": "distinguished",
    r"whoever": "anyone who",
    r"(?<!there )(is|are) no (?!\w+er\b|more|less|such)[a-z]+": "is not a",
    r"what is to be": "the noun",
    r"\d of 100": "N in 100, or N%",
    r"parts of 100": "%",
    r"(that|those) of": "repeat the noun",
    r"one's own|of ours": "custom; ours",
}
"""Patterns of idioms and terms that only insiders understand, and their replacements."""
_IDIOMS = [(re.compile(rf"\b(?:{one})\b", re.IGNORECASE), say) for one, say in INSTEAD.items()]
_DRAW = re.compile(r"\b(?:a|the|each|every|per|\d+) draws?\b", re.IGNORECASE)
_OPENING = re.compile(r"(What|Whoever) [^?]*[.;]$|(Of|By(?! default)|Behind) [^?,]*[.;]$")
_NO_VERB = re.compile(
    r"(a|an|the|no|not|what|who|whoever|of|by|in|on|at|for|from|with|to|and|or|if|when|where|how|"
    r"why|each|every|all|any|both|one|two|it|its|they|their|we|our|you|this|that|these|those|there|"
    r"more|less|some|many|new|old|only|also|now|it|fix(?:ed|es)|tests?|docs?|readme|wip|"
    r"(?!(?:need|feed|seed|shed|embed|exceed|proceed|bring|string)$)\w+(?:ed|ing)|"
    r"(?!focus$)\w*[^s\W]s|\w+:)",
    re.IGNORECASE,
)


def faults_of(sentence: Sentence) -> Iterator[str]:
    """Yield the faults of a sentence, each with a suggested replacement."""
    text = re.sub(r"`[^`]*`", "x", sentence.text)
    words = re.findall(r"[^\W_][\w'.,%-]*", text)
    limit = LIMITS.get(sentence.surface)
    if limit is not None and len(words) > limit:
        yield f"has {len(words)} words; at most {limit}"
    extra = [] if limit is None else [(_DRAW, "simulated release, repetition")]
    for pattern, say in _IDIOMS + extra:
        match = pattern.search(text)
        if match is not None:
            yield f'"{match[0]}": write {say}'
    if sentence.surface != "comments" and _OPENING.match(text):
        yield f'begins with "{words[0]}": put the actor first'


def faults_of_subject(subject: str) -> Iterator[str]:
    """Yield the faults of a commit message's first line."""
    if subject.startswith(("Merge ", 'Revert "', "fixup! ", "squash! ")):
        return
    if len(subject) > SUBJECT:
        yield f"has {len(subject)} characters; at most {SUBJECT}"
    first = subject.partition(" ")[0]
    if _NO_VERB.fullmatch(first) or not first[:1].isupper() or subject.endswith("."):
        yield f'begins with "{first}": write an imperative, "Add", without a full stop'
    yield from faults_of(Sentence("commits", "", 0, subject))


def new_sentences(root: Path) -> Iterator[Sentence]:
    """Yield the sentences of changed files that no changed file had before."""
    now, before = list[Sentence](), set[str]()
    start = base(root)
    for path in sorted(changed(root) or ()):
        before.update(one.text for one in sentences(path, git(root, "show", f"{start}:{path}")))
        if (root / path).is_file():
            now += sentences(path, (root / path).read_text("utf-8", errors="replace"))
    yield from (one for one in now if one.text not in before)


def every_sentence(root: Path) -> Iterator[Sentence]:
    """Yield the sentences of all files that git knows."""
    for path in git(root, "ls-files").splitlines():
        yield from sentences(path, (root / path).read_text("utf-8", errors="replace"))


def relapses(root: Path, *, whole: bool = False) -> Iterator[str]:
    """Yield every fault as text, with the place of its sentence or the name of its commit."""
    for sentence in every_sentence(root) if whole else new_sentences(root):
        for fault in faults_of(sentence):
            yield f"{sentence.path}:{sentence.line}: {fault}\n  {sentence.text}"
    start = base(root)
    for line in git(root, "log", "--format=%h %s", f"{start}..HEAD").splitlines() if start else ():
        commit, _, subject = line.partition(" ")
        yield from (f"{commit}: {fault}\n  {subject}" for fault in faults_of_subject(subject))


def main(arguments: list[str]) -> int:
    """Print the faults; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commit-msg", type=Path, metavar="FILE", help="check one message alone")
    parser.add_argument("--all", action="store_true", help="read every sentence, not new ones")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; usual: this one")
    options = parser.parse_args(arguments)
    if options.commit_msg is not None:
        faults = list(faults_of_subject(options.commit_msg.read_text("utf-8").partition("\n")[0]))
    else:
        faults = list(relapses(options.root, whole=options.all))
    print("\n".join(faults), file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
