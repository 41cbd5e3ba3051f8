"""The manifest of a work folder: which stages and tasks are done.

Each task ends by writing its record. When all tasks of a stage are done, their records move to
``manifest.json``. A run with the same parameters skips what is recorded. A run with other
parameters or other input is rejected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import NDArray

from ..version import __version__
from .folder import DamagedFileError, Folder, to_plain

NAME = "manifest.json"
VERSION = 5


@dataclass(frozen=True)
class Record:
    """The files that a task wrote, and its results, which must be small and JSON-compatible."""

    files: list[str]
    result: dict[str, Any]


@dataclass
class Output:
    """The work folder for one task; collects the names of the files that it writes."""

    folder: Folder
    files: list[str] = field(default_factory=list)

    def array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array."""
        self.folder.write_array(name, array)
        self.files.append(name)

    def save(self, base: str, **arrays: NDArray[Any]) -> None:
        """Write several arrays whose names begin with `base`."""
        for name, array in arrays.items():
            self.array(f"{base}.{name}.npy", array)

    def json(self, name: str, data: object) -> None:
        """Write data as JSON."""
        self.folder.write_json(name, data)
        self.files.append(name)


def record_name(stage: str, task: int) -> str:
    """Return the file name of a task's record."""
    return f"records/{stage.replace(' ', '-')}/{task:06d}.json"


def read_record(folder: Folder, stage: str, task: int) -> Record | None:
    """Return the record of a task; None if it is not done."""
    try:
        return Record(**folder.read_json(record_name(stage, task)))
    except (FileNotFoundError, DamagedFileError):
        return None


class Manifest:
    """The manifest of a work folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.data: dict[str, Any] = {}

    def open(self, parameters: Mapping[str, object]) -> bool:
        """Begin a run, or continue one with the same parameters; return whether it continues."""
        wanted = json.loads(json.dumps(parameters, default=to_plain))
        if not self.load():
            if self.folder.names():
                raise ValueError(
                    f"work folder {self.folder.url} has files but no {NAME}; choose an empty folder"
                )
            self.data = {
                "version": VERSION,
                "gdpa": __version__,
                "parameters": wanted,
                "stages": {},
                "removed": [],
            }
            self._save()
            return False
        if self.data["gdpa"] != __version__:
            raise ValueError(
                f"work folder {self.folder.url} was begun by gdpa {self.data['gdpa']}, but this is "
                f"gdpa {__version__}; continue with the same version, or start again with an empty "
                "work folder"
            )
        stored = self.parameters
        for name in [*wanted, *stored]:
            if wanted.get(name) != stored.get(name):
                where, before, now = first_difference(stored.get(name), wanted.get(name), name)
                raise ValueError(
                    f"work folder {self.folder.url} belongs to another run: {where} was "
                    f"{_short(before)}, now it is {_short(now)}; to continue, use the same options "
                    "and input; else use another folder"
                )
        return True

    def load(self) -> bool:
        """Read the manifest; return False if there is none."""
        try:
            data = self.folder.read_json(NAME)
        except FileNotFoundError:
            return False
        if data["version"] != VERSION:
            raise ValueError(
                f"work folder {self.folder.url} has format {data['version']}, but this version of "
                f"gdpa uses format {VERSION}; start again with an empty work folder"
            )
        self.data = data
        return True

    def remove_folder(self, parameters: Mapping[str, object]) -> None:
        """Remove the work folder, if it belongs to a run with these parameters."""
        wanted = json.loads(json.dumps(parameters, default=to_plain))
        if self.load() and self.parameters == wanted:
            self.folder.remove_all()

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the run."""
        return dict(self.data["parameters"])

    def stage(self, name: str) -> list[dict[str, Any]] | None:
        """Return the results of a finished stage; None if it is not finished."""
        records = self.data["stages"].get(name)
        return None if records is None else [dict(record["result"]) for record in records]

    def lost_files(self) -> dict[str, str]:
        """Return the finished stages of which a file is missing, and the first such file."""
        present = set(self.folder.names())
        found: dict[str, str] = {}
        for name, records in self.data["stages"].items():
            for file in (file for record in records for file in record["files"]):
                if file not in present and name not in self.data["removed"]:
                    found.setdefault(name, file)
        return found

    def check(self) -> None:
        """Raise an error if a file of a finished stage is missing."""
        for name, file in self.lost_files().items():
            raise ValueError(
                f"{self.folder.url}/{file}, written by stage {name!r}, is missing; start again "
                "with an empty work folder"
            )

    def reopen_lost(self) -> None:
        """Mark stages of which a file is missing as unfinished, and all stages after them.

        What they are computed from may have been removed, because nothing needed it any more. So
        stages before them are computed again from the first one that was removed.
        """
        lost = self.lost_files()
        if not lost:
            return
        names = list(self.data["stages"])
        last = min(names.index(name) for name in lost)
        first = min(i for i, name in enumerate(names) if i == last or name in self.data["removed"])
        for name in names[first:]:
            self.reopen(name)
        self.data["removed"] = [name for name in self.data["removed"] if name in names[:first]]
        self._save()

    def seal(self, name: str, records: Sequence[Record]) -> None:
        """Mark a stage as finished, and remove the records that the manifest now has."""
        self.data["stages"][name] = [asdict(record) for record in records]
        self._save()
        self.folder.remove(record_name(name, task) for task in range(len(records)))

    def discard(self, name: str) -> None:
        """Remove the files of a finished stage that is no longer needed."""
        if name not in self.data["removed"]:
            self.data["removed"].append(name)
            self._save()
            for record in self.data["stages"][name]:
                self.folder.remove(record["files"])

    def reopen(self, name: str) -> None:
        """Mark a stage as unfinished."""
        self.data["stages"].pop(name, None)

    def note(self, name: str, value: object) -> None:
        """Store a result of the run in the manifest."""
        self.data[name] = value
        self._save()

    def _save(self) -> None:
        self.folder.write_json(NAME, self.data)


def first_difference(before: object, now: object, where: str) -> tuple[str, object, object]:
    """Return the place of the first difference between two values, and what they have there."""
    if isinstance(before, list) and isinstance(now, list):
        for i, (one, other) in enumerate(zip(before, now, strict=False)):
            if one != other:
                if i == 1 and isinstance(before[0], str):  # a file and its fingerprint
                    return f"the content of {before[0]}", one, other
                return first_difference(one, other, f"{where}, item {i + 1}")
        return f"the number of items in {where}", len(before), len(now)
    return where, before, now


def _short(value: object, length: int = 300) -> str:
    """Return a value as text, without its middle if it is long."""
    text = json.dumps(value)
    half = length // 2
    return text if len(text) <= length else f"{text[:half]} ... {text[-half:]}"
