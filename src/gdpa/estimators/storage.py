"""Save and load fitted estimators: arrays and JSON in one ``.npz`` file, never pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def save_model(model: Any, path: Any, extra: Any) -> Path:
    raise NotImplementedError


def load_model(cls: Any, path: Any) -> Any:
    raise NotImplementedError
