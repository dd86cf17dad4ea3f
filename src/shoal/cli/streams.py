"""Standard streams that can write every text, and that end quietly on Ctrl-C.

A terminal that knows ASCII alone (``LANG=C``, ``PYTHONIOENCODING=ascii``, an old log viewer) gets
the nearest ASCII: "+-" for "±", ">=" for "≥".
"""

import _thread
import codecs
import os
import signal
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

NEAREST = {
    "±": "+-", "≥": ">=", "≤": "<=", "−": "-", "–": "-", "·": "*", "×": "x", "√": "sqrt ",
    "→": "->", "…": "...", "“": '"', "”": '"', "’": "'", "µ": "u", "²": "^2", "•": "*",
    **dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True)),
}  # fmt: skip


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """Replace what a stream can't encode: the error handler "shoal"."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(map(_ascii, text)), error.end


def _ascii(character: str) -> str:
    if character in NEAREST:
        return NEAREST[character]
    letters = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return letters or "?"


def _find_ascii(name: str) -> codecs.CodecInfo | None:
    """Return ASCII by another name: Click writes UTF-8 to streams that it sees to be ASCII."""
    if name != "plain_ascii":
        return None
    ascii_codec = codecs.lookup("ascii")
    return codecs.CodecInfo(
        name=name,
        encode=ascii_codec.encode,
        decode=ascii_codec.decode,
        incrementalencoder=ascii_codec.incrementalencoder,
        incrementaldecoder=ascii_codec.incrementaldecoder,
    )


codecs.register_error("shoal", _nearest)
codecs.register(_find_ascii)


def allow_any_text() -> None:
    """Let the standard streams write every text, whatever the terminal's encoding."""
    for stream, original in ((sys.stdout, sys.__stdout__), (sys.stderr, sys.__stderr__)):
        if stream is not original or not isinstance(stream, TextIOWrapper):
            continue  # a caller's own
        if _is_ascii(stream.encoding):
            stream.reconfigure(encoding="plain_ascii", errors="shoal")
        else:
            stream.reconfigure(errors="shoal")


def _is_ascii(encoding: str) -> bool:
    """Return whether a terminal knows ASCII alone, by its encoding or by LANG=C.

    Python writes UTF-8 in the C locale. That is right where no locale is set, as in most
    containers, but not where somebody asks for C.
    """
    if codecs.lookup(encoding).name == "ascii":
        return True
    if os.environ.get("PYTHONIOENCODING") or os.environ.get("PYTHONUTF8"):
        return False
    locale = os.environ.get("LC_ALL") or os.environ.get("LANG")
    return locale in ("C", "POSIX")


class Interrupts:
    """Whether Ctrl-C was pressed: what fails after it fails because of it."""

    pressed = False
    _again: threading.Timer | None = None

    def handle(self, number: int, frame: object) -> None:
        """Raise KeyboardInterrupt, again if a finaliser or a callback has swallowed it."""
        self.pressed = True
        sys.unraisablehook = self._interrupt_again
        raise KeyboardInterrupt

    def _interrupt_again(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """Print nothing of what fails after Ctrl-C; raise it where it can end the command.

        That is a moment later: what is raised in here would be swallowed as well.
        """
        if unraisable.exc_type is KeyboardInterrupt:
            self._again = threading.Timer(0.01, _thread.interrupt_main)
            self._again.daemon = True
            self._again.start()

    def forget(self) -> None:
        """Raise nothing any more, and let the command choose its exit code.

        Python kills itself at its end if Ctrl-C fell into an ``exec`` (as in a dataclass that was
        being made), whoever caught it since; the next piece of text that it runs makes it forget.
        """
        if self._again is not None:
            self._again.cancel()
        eval("None")


_watching: list[Interrupts] = []


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt where Ctrl-C was pressed and the command goes on nevertheless.

    A library that is being imported may catch everything. A command that works says so here.
    """
    if any(interrupts.pressed for interrupts in _watching):
        raise KeyboardInterrupt


@contextmanager
def watch_interrupts() -> Iterator[Interrupts]:
    """Notice Ctrl-C while the block runs, also where a library turns it into another error."""
    interrupts = Interrupts()
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before, hook = signal.signal(signal.SIGINT, interrupts.handle), sys.unraisablehook
    _watching.append(interrupts)
    try:
        yield interrupts
    finally:
        _watching.remove(interrupts)
        interrupts.forget()
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook
