"""The command ``completion``: what a shell needs to complete commands and options."""

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
    """Add the parser of the command."""
    how = "; ".join(f"in {shell}: {line}" for shell, line in _HOW.items())
    parser = commands.add_parser("completion", help="print a shell's completion of all commands",
                                 epilog=f"Put it into your shell's start file: {how}")  # fmt: skip
    parser.add_argument("shell", metavar="SHELL", choices=_HOW, help=", ".join(_HOW))
    parser.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    print(_SCRIPTS[arguments.shell](_known()))
    return 0


def _known() -> dict[str, list[str]]:
    """Return what may follow each command; under the empty name the commands themselves."""
    from dpviz.cli import build_parser

    # argparse has no public way to its commands
    (action,) = (one for one in build_parser()._actions if one.dest == "command")
    parsers: dict[str, argparse.ArgumentParser] = dict(action.choices or {})
    tables = sorted(builtin_tables())
    found = {"": sorted({name.partition(" ")[0] for name in parsers})}
    for name, parser in parsers.items():
        options = [o for one in parser._actions for o in one.option_strings if o.startswith("--")]
        first = tables if any(one.dest == "table" for one in parser._actions) else []
        # a command of two words: the second stands among what may follow the first
        above, _, under = name.partition(" ")
        words = [*([under] if under else []), *first, *options, "--plugin"]
        found[above] = list(dict.fromkeys([*found.get(above, []), *words]))
    found["--mechanism"] = sorted(all_mechanisms())
    return found


def _cases(known: dict[str, list[str]], line: str) -> str:
    return "\n".join(
        line.format(name=name, words=shlex.quote(" ".join(words)))
        for name, words in known.items()
        if name and not name.startswith("-")
    )


def _bash(known: dict[str, list[str]]) -> str:
    cases = _cases(known, "    {name}) words={words} ;;")
    return f"""_dpviz() {{
  local words="" last="${{COMP_WORDS[COMP_CWORD-1]}}" here="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then words={shlex.quote(" ".join(known[""]))}
  elif [ "$last" = "--mechanism" ]; then words={shlex.quote(" ".join(known["--mechanism"]))}
  else case "${{COMP_WORDS[1]}}" in
{cases}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$here") $(compgen -f -- "$here"))
}}
complete -o filenames -F _dpviz dpviz"""


def _zsh(known: dict[str, list[str]]) -> str:
    # zsh reads bash's completions by a module of its own
    return f"autoload -Uz bashcompinit && bashcompinit\n{_bash(known)}"


def _fish(known: dict[str, list[str]]) -> str:
    lines = [f"complete -c dpviz -n __fish_use_subcommand -a {shlex.quote(' '.join(known['']))}"]
    for name, words in known.items():
        if name and not name.startswith("-"):
            here = shlex.quote(f"__fish_seen_subcommand_from {name}")
            lines.append(f"complete -c dpviz -n {here} -a {shlex.quote(' '.join(words))}")
    return "\n".join(lines)


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
