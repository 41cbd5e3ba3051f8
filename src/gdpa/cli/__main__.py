"""``python -m gdpa.cli`` is ``gdpa``."""

from . import main

main()
