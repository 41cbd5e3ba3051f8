"""``python -m gdpa`` is ``gdpa``."""

from .cli import main

main()
