"""``python -m shoal.cli``: the same as ``shoal``."""

from shoal.cli.main import main

main()
