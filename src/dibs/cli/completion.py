"""`dibs completion`: names of commands, options, queues and tasks, completed by the shell."""

from __future__ import annotations

from dibs.cli import output
from dibs.cli.grammar import argument, command
from dibs.cli.kinds import OneOf


@command(
    "completion",
    examples=('eval "$(dibs completion bash)"', "dibs completion fish > ~/.config/fish/completions/dibs.fish"),
    app=False,
    url=False,
)
@argument("shell", key="argument.shell", metavar="bash|zsh|fish", type=OneOf(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """A script for the shell's start file."""
    from click.shell_completion import get_completion_class

    from dibs.cli.tree import root

    kind = get_completion_class(shell)
    assert kind is not None
    output.line(kind(root, {}, "dibs", "_DIBS_COMPLETE").source())
