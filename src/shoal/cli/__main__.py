"""``python -m shoal.cli``: the same as ``shoal``, which starts here too."""

import os
import signal


def start() -> None:
    """Run the command; Ctrl-C while it is loaded, or ends, shows no traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)
    from shoal.cli.main import main

    main(prog_name="shoal")


def _exit(number: int, frame: object) -> None:
    os.write(2, b"Stopped.\n")
    os._exit(130)


if __name__ == "__main__":
    start()
