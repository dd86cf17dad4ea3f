"""``shoal serve``: one process tree with both roles, each restarted if it dies.

If a role refuses its first start, everything ends, with the reason in one line.

The supervisor opens neither store. It reads all settings and passes each role its part, in the
environment alone. Both get the learner's token, which changes with every start; the other tokens
are printed once, when the store is new.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from types import FrameType

from shoal.service.process import SUPERVISED
from shoal.service.settings import Settings, environment_of

POLL_SECONDS = 0.2
MIN_RESTART_SECONDS = 1.0  # from one start of a child to the next
REFUSED = 2  # the exit code of a command that can't start


class Child:
    """One role in a separate process, which ends when the supervisor's end of a pipe is closed.

    It gets only its part of the settings: the learner never knows where the aggregator's store is.
    """

    def __init__(self, role: str, environment: dict[str, str], *options: str) -> None:
        self._role = role
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("SHOAL_")}
        self._environment = inherited | environment | {SUPERVISED: "1"}
        self._starts = 0
        self.start(*options)

    def start(self, *options: str) -> None:
        """Start the process, or start it again."""
        self._started = time.monotonic()
        self._starts += 1
        command = [sys.executable, "-m", "shoal.cli", "serve", *options, self._role]
        self.process = subprocess.Popen(command, env=self._environment, stdin=subprocess.PIPE)

    def refused(self) -> bool:
        """Return whether the first start was refused; a later one may be, for a while."""
        return self._starts == 1 and self.process.poll() == REFUSED

    def ended(self) -> bool:
        """Return whether the process has died and may be started again."""
        seconds = time.monotonic() - self._started
        return self.process.poll() is not None and seconds > MIN_RESTART_SECONDS

    def wait(self) -> None:
        """Wait until the process, which was asked to end, has ended."""
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run_both(settings: Settings, *, options: list[str]) -> int:
    """Run both roles until a signal; ``options`` are for the aggregator's first start.

    Returns the exit code.
    """
    token = {"SHOAL_LEARNER_TOKEN": f"shoal.learner.{secrets.token_urlsafe(32)}"}
    address = {"SHOAL_LEARNER_AGGREGATOR": settings.aggregator.address}
    running, refused = True, False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal running
        running = False

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    children = [
        Child("aggregator", environment_of(settings, "aggregator") | token, *options),
        Child("learner", environment_of(settings, "learner") | token | address),
    ]
    while running:
        time.sleep(POLL_SECONDS)
        for child in children:
            if child.refused():  # its settings are wrong: trying again won't help
                running, refused = False, True
            elif running and child.ended():
                child.start()
    for child in children:
        child.process.terminate()
    for child in children:
        child.wait()
    return REFUSED if refused else 0
