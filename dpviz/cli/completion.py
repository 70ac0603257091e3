"""The command ``completion``: scripts that let a shell complete commands and options."""

from __future__ import annotations

import argparse
import shlex

from dpviz.cli.options import Commands
from dpviz.datasets import builtin_tables
from dpviz.mechanisms import all_mechanisms

_HOW = {
    "bash": 'eval "$(dpviz completion bash)"',
    "zsh": 'eval "$(dpviz completion zsh)"',
    "fish": "dpviz completion fish | source",
}


def add(commands: Commands) -> None:
    """Add the parser of the command ``completion``."""
    how = "; ".join(f"in {shell}: {line}" for shell, line in _HOW.items())
    parser = commands.add_parser("completion", help="print a shell script that completes commands",
                                 epilog=f"Line for your shell's start file: {how}")  # fmt: skip
    parser.add_argument("shell", metavar="SHELL", choices=_HOW, help=", ".join(_HOW))
    parser.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    print(_SCRIPTS[arguments.shell](_completions()))
    return 0


def _completions() -> dict[str, list[str]]:
    """Return the words that may follow each command; the empty key holds the commands."""
    from dpviz.cli import build_parser

    # argparse has no public function that returns its subcommands.
    (action,) = (one for one in build_parser()._actions if one.dest == "command")
    parsers: dict[str, argparse.ArgumentParser] = dict(action.choices or {})
    tables = sorted(builtin_tables())
    offers = {"": sorted({name.partition(" ")[0] for name in parsers})}
    for name, parser in parsers.items():
        options = [o for one in parser._actions for o in one.option_strings if o.startswith("--")]
        first = tables if any(one.dest == "table" for one in parser._actions) else []
        # For a two-word command, complete its second word after its first word.
        above, _, under = name.partition(" ")
        words = [*([under] if under else []), *first, *options, "--plugin"]
        offers[above] = list(dict.fromkeys([*offers.get(above, []), *words]))
    offers["--mechanism"] = sorted(all_mechanisms())
    return offers


def _cases(offers: dict[str, list[str]], line: str) -> str:
    return "\n".join(
        line.format(name=name, words=shlex.quote(" ".join(words)))
        for name, words in offers.items()
        if name and not name.startswith("-")
    )


def _bash(offers: dict[str, list[str]]) -> str:
    cases = _cases(offers, "    {name}) words={words} ;;")
    return f"""_dpviz() {{
  local words="" last="${{COMP_WORDS[COMP_CWORD-1]}}" here="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then words={shlex.quote(" ".join(offers[""]))}
  elif [ "$last" = "--mechanism" ]; then words={shlex.quote(" ".join(offers["--mechanism"]))}
  else case "${{COMP_WORDS[1]}}" in
{cases}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$here") $(compgen -f -- "$here"))
}}
complete -o filenames -F _dpviz dpviz"""


def _zsh(offers: dict[str, list[str]]) -> str:
    # zsh can read completions for bash with its module `bashcompinit`.
    return f"autoload -Uz bashcompinit && bashcompinit\n{_bash(offers)}"


def _fish(offers: dict[str, list[str]]) -> str:
    lines = [f"complete -c dpviz -n __fish_use_subcommand -a {shlex.quote(' '.join(offers['']))}"]
    for name, words in offers.items():
        if name and not name.startswith("-"):
            here = shlex.quote(f"__fish_seen_subcommand_from {name}")
            lines.append(f"complete -c dpviz -n {here} -a {shlex.quote(' '.join(words))}")
    return "\n".join(lines)


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
