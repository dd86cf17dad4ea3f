"""``shoal serve``: one process tree with both roles, each restarted if it dies.

If a role's first start fails, everything ends, with the role's own reason: what has never run is
not tried again and again. A role that has served before is started again, however it ended.

The supervisor opens neither store. It reads all settings and passes each role its part, in the
environment alone. Both get the learner's token, which changes with every start; the other tokens
are written to a file once, when the store is new.
"""

import logging
import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from errno import EACCES
from types import FrameType

from shoal.errors import ShoalError
from shoal.service import logs
from shoal.service.listener import bind
from shoal.service.settings import Settings, environment_of
from shoal.service.startup import SUPERVISED, announce_ready

POLL_SECONDS = 0.2
MIN_RESTART_SECONDS = 1.0  # from one start of a child to the next
REFUSED = 2  # the exit code of a command that can't start
MAX_FIRST_STARTS = 3  # of a child that is killed before it serves

log = logging.getLogger("shoal.service")


class Child:
    """One role in a separate process, which ends when the supervisor's end of a pipe is closed.

    It gets only its part of the settings: the learner never knows where the aggregator's store is.
    """

    def __init__(self, role: str, environment: dict[str, str], *options: str) -> None:
        self._role = role
        private = ("SHOAL_", "NOTIFY_SOCKET")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(private)}
        self._environment = inherited | environment
        self._starts = 0
        self._has_served = False
        self.start(*options)

    def start(self, *options: str) -> None:
        """Start the process, or start it again."""
        self._started = time.monotonic()
        self._starts += 1
        if self._starts > 1:
            self._close_pipes()
        self._ready, pipe = os.pipe()
        os.set_blocking(self._ready, False)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "serve", *options, self._role],
            env=self._environment | {SUPERVISED: str(pipe)},
            stdin=subprocess.PIPE,
            pass_fds=[pipe],
        )
        os.close(pipe)

    def _close_pipes(self) -> None:
        os.close(self._ready)
        if self.process.stdin is not None:
            self.process.stdin.close()

    def has_served(self) -> bool:
        """Return whether the process has ever been ready to serve."""
        if not self._has_served:
            with suppress(BlockingIOError):
                self._has_served = os.read(self._ready, 1) == b"1"
        return self._has_served

    def failed(self) -> int:
        """Return the exit code of a first start that failed, 0 where none did.

        One that was killed is no failure of its own, and may be tried a few times.
        """
        code = self.process.poll()
        if code is None or self.has_served():
            return 0
        if code < 0 and self._starts < MAX_FIRST_STARTS:
            return 0
        return REFUSED if code == REFUSED else 1

    def ended(self) -> bool:
        """Return whether the process has died and may be started again."""
        seconds = time.monotonic() - self._started
        return self.process.poll() is not None and seconds > MIN_RESTART_SECONDS

    def restart(self) -> None:
        """Start the process again, and say so."""
        code = self.process.returncode
        cause = f"was killed by signal {-code}" if code < 0 else f"has ended with exit code {code}"
        log.warning("the %s %s; it is started again", self._role, cause)
        self.start()

    def wait(self) -> None:
        """Wait until the process, which was asked to end, has ended."""
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def make_data_folder(settings: Settings) -> None:
    """Make the folder of the stores, if they are in one; both roles would say why it fails."""
    if settings.aggregator.database and settings.learner.database:
        return
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(settings.data, os.W_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES), str(settings.data))
    except OSError as error:
        raise ShoalError(f"data must be a folder that can be written; {error}.") from None


def run_both(settings: Settings, *, options: list[str]) -> int:
    """Run both roles until a signal; ``options`` are for the aggregator's first start.

    Returns the exit code.
    """
    logs.configure(settings.aggregator.log_format)
    bind("aggregator", settings.aggregator.host, settings.aggregator.port).close()
    bind("learner", settings.learner.host, settings.learner.port).close()
    make_data_folder(settings)
    token = {"SHOAL_LEARNER_TOKEN": f"shoal.learner.{secrets.token_urlsafe(32)}"}
    address = {"SHOAL_LEARNER_AGGREGATOR": settings.aggregator.address}
    running, exit_code, announced = True, 0, False

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
        for child in children if running else ():
            exit_code = exit_code or child.failed()
            if not exit_code and child.ended():
                child.restart()
        running = running and not exit_code
        if running and not announced and all(child.has_served() for child in children):
            announce_ready()
            announced = True
    for child in children:
        child.process.terminate()
    for child in children:
        child.wait()
    return exit_code
