"""The command in this process, with files or a real terminal as what it reads and writes."""

import os
import pty
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from threading import Thread
from unittest.mock import patch

from typer.testing import CliRunner

from holdfast.cli.command import app

#: What a terminal takes as the end of all that is typed (control and D).
END = b"\x04"


def command(*words: str, terminal: bool, answers: str = "") -> tuple[int, str, str]:
    """Run the command; on a terminal, where answers are typed, all that it says is returned as one text."""
    if not terminal:
        done = CliRunner().invoke(app, list(words))
        return done.exit_code, done.stdout, done.stderr
    ours, theirs = pty.openpty()
    told = []
    reader = Thread(target=_read, args=(ours, told))
    reader.start()
    os.write(ours, answers.encode() + END)
    with ExitStack() as stack:
        read, written, said = (stack.enter_context(open(os.dup(theirs), mode)) for mode in ("r", "w", "w"))
        os.close(theirs)
        stack.enter_context(patch.object(sys, "stdin", read))
        stack.enter_context(redirect_stdout(written))
        stack.enter_context(redirect_stderr(said))
        try:
            app(list(words))
        except SystemExit as end:
            code = int(end.code or 0)
    reader.join()
    os.close(ours)
    return code, b"".join(told).decode(), ""


def _read(file: int, told: list[bytes]) -> None:
    """Take all that is said until nobody can say more, which Linux reports as an error."""
    try:
        while piece := os.read(file, 65536):
            told.append(piece)
    except OSError:
        return
