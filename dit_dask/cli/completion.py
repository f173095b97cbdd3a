"""dit completion: a script for the shell that completes subcommands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from dit_dask.cli.parser import OK, Subcommand, build_parser
from dit_dask.cli.terminal import write_lines

BASH = """\
# eval "$(dit completion bash)"
_dit() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands}"; fi
  if [ "$COMP_CWORD" -gt 1 ] && [[ "$2" != -* ]]; then
    COMPREPLY=($(compgen -f -- "$2"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$2"))
  fi
}}
complete -o filenames -F _dit dit
"""
ZSH = '# eval "$(dit completion zsh)"\nautoload -U +X bashcompinit && bashcompinit\n{bash}'
FISH_HEAD = "# dit completion fish | source\n"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a completion."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    """dit completion."""
    from dit_dask.cli.commands import SUBCOMMANDS

    listed = [one for one in SUBCOMMANDS if one.is_listed]
    write_lines(script(options.shell, listed).removesuffix("\n"))
    return OK


def script(shell: str, subcommands: Sequence[Subcommand]) -> str:
    """The script of a shell, from the same tables as the parser."""
    words = option_words(subcommands)
    if shell == "fish":
        return FISH_HEAD + "\n".join(_fish(one, words[one.name]) for one in subcommands) + "\n"
    cases = "\n".join(f'    {name}) words="{" ".join(options)}" ;;' for name, options in words.items())
    bash = BASH.format(cases=cases, commands=" ".join(words))
    return bash if shell == "bash" else ZSH.replace("{bash}", bash)


def option_words(subcommands: Sequence[Subcommand]) -> Mapping[str, list[str]]:
    """The options of each subcommand."""
    parser = build_parser(subcommands)
    (choices,) = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {
        one.name: [
            option for action in choices[one.name]._actions for option in action.option_strings if option.startswith("--")
        ]
        for one in subcommands
    }


def _fish(subcommand: Subcommand, options: Sequence[str]) -> str:
    quoted = subcommand.description.replace("\\", "\\\\").replace("'", "\\'")
    lines = [f"complete -c dit -n __fish_use_subcommand -a {subcommand.name} -d '{quoted}'"]
    seen = f"-n '__fish_seen_subcommand_from {subcommand.name}'"
    return "\n".join([*lines, *(f"complete -c dit {seen} -l {option.removeprefix('--')}" for option in options)])


SUBCOMMAND = Subcommand(
    "completion",
    "print a script that completes dit in bash, zsh or fish",
    "dit completion bash >> ~/.bash_completion",
    arguments,
    run,
)
