"""Run an example whose commands are forked from this process, which has loaded everything, and not started afresh.

Started with the file of the example and its arguments. Every command is still a process of its own that can be killed.
"""

import os
import runpy
import subprocess
import sys

import holdfast.cli.command
import holdfast.release.agents  # noqa: F401
from holdfast.cli.command import main

COMMAND = [sys.executable, "-m", "holdfast.cli"]


class Forked:
    """What an example asks of a process."""

    def __init__(self, words, cwd):
        assert words[: len(COMMAND)] == COMMAND, words
        sys.stdout.flush()
        self.status = None
        self.pid = os.fork()
        if not self.pid:
            os.chdir(cwd)
            sys.argv = ["holdfast", *words[len(COMMAND) :]]
            try:
                main()
            except SystemExit as end:
                sys.stdout.flush()
                os._exit(end.code or 0)
            finally:
                os._exit(1)

    def poll(self, how=os.WNOHANG):
        """Its status if it has ended, otherwise None."""
        if self.status is None:
            ended, status = os.waitpid(self.pid, how)
            self.status = os.waitstatus_to_exitcode(status) if ended else None
        return self.status

    def wait(self):
        """Its status once it has ended."""
        return self.poll(0)


def run(words, cwd, check):
    """Run a command to its end."""
    status = Forked(words, cwd).wait()
    if check and status:
        raise subprocess.CalledProcessError(status, words)


if __name__ == "__main__":
    subprocess.Popen, subprocess.run = Forked, run
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
