"""What has been done in a work folder: the manifest decides, not the presence of a file.

Each task ends by writing its record, which names its files with their sizes and checksums. When
all tasks of a stage are done their records become part of ``manifest.json``. A run that starts in a
folder with a manifest of the same parameters skips what is recorded; one with other parameters, or
other input, is refused.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .store import Folder

__all__ = ["FORMAT", "Manifest", "Output", "Record"]

FORMAT = "gdpa-distributed"
VERSION = 1
NAME = "manifest.json"

Files = dict[str, list[int]]


@dataclass(frozen=True)
class Record:
    """What a task has done.

    Parameters
    ----------
    files : dict
        Name of each file with its size and CRC-32.
    result : dict
        Small results, as JSON can hold them.
    """

    files: Files
    result: dict[str, Any]

    def complete(self, folder: Folder, *, checksums: bool) -> bool:
        """Whether all files are there with the right size, and on request the right content."""
        for name, (size, crc) in self.files.items():
            if folder.size(name) != size:
                return False
            if checksums and zlib.crc32(folder.read(name)) != crc:
                return False
        return True


@dataclass
class Output:
    """Files that a task writes, noted for its record.

    Parameters
    ----------
    folder : Folder
        Where they go.
    """

    folder: Folder
    files: Files = field(default_factory=dict)

    def array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array."""
        self.files[name] = list(self.folder.write_array(name, array))

    def json(self, name: str, data: Any) -> None:
        """Write plain data."""
        self.files[name] = list(self.folder.write(name, json.dumps(data).encode()))


def record_name(stage: str, task: str) -> str:
    """Name of the file that holds a task's record."""
    return f"records/{stage}/{task}.json"


def read_record(folder: Folder, stage: str, task: str) -> Record | None:
    """Record of a task, None if it has not ended."""
    try:
        data = json.loads(folder.read(record_name(stage, task)))
        return Record(data["files"], data["result"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return None  # cut short in a store without atomic writes: not done


def write_record(folder: Folder, stage: str, task: str, record: Record) -> None:
    """Write the record of a task that has ended."""
    data = {"files": record.files, "result": record.result}
    folder.write(record_name(stage, task), json.dumps(data).encode())


class Manifest:
    """The manifest of a work folder.

    Parameters
    ----------
    folder : Folder
        The folder.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.data: dict[str, Any] = {}

    def open(self, parameters: Mapping[str, Any]) -> None:
        """Begin, or go on with a run of the same parameters.

        Parameters
        ----------
        parameters : mapping
            Everything that decides the result, as JSON can hold it, the input's sizes and
            fingerprints too.

        Raises
        ------
        ValueError
            If the folder belongs to a run with other parameters (the first difference is named), or
            holds files but no manifest.
        """
        wanted = json.loads(json.dumps(parameters))
        if not self.load():
            if self.folder.names(""):
                raise ValueError(
                    f"work folder {self.folder.url} holds files but no {NAME}; choose an empty "
                    "folder"
                )
            self.data = {
                "format": FORMAT, "version": VERSION, "parameters": wanted, "stages": {},
            }  # fmt: skip
            self._save()
            return
        stored = self.data["parameters"]
        for name in [*wanted, *stored]:
            if wanted.get(name) != stored.get(name):
                raise ValueError(
                    f"work folder {self.folder.url} belongs to another run: its {name} is "
                    f"{_short(stored.get(name))}, asked for is {_short(wanted.get(name))}; use the "
                    "same options and input to go on, or another folder"
                )

    def load(self) -> bool:
        """Read the manifest; False if there is none."""
        try:
            data = json.loads(self.folder.read(NAME))
        except FileNotFoundError:
            return False
        except ValueError as error:
            raise ValueError(f"{self.folder.url}/{NAME} is damaged: {error}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"{self.folder.url}/{NAME} is no manifest of a distributed run")
        if int(data.get("version", 0)) > VERSION:
            raise ValueError(
                f"{self.folder.url} was written by a newer gdpa (format {data['version']}, this "
                f"one reads up to {VERSION})"
            )
        self.data = data
        return True

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the run."""
        return dict(self.data["parameters"])

    def stage(self, name: str) -> dict[str, Record] | None:
        """Records of a stage that is done, None if it is not.

        Raises
        ------
        ValueError
            If one of its files has been removed or cut.
        """
        tasks = self.data["stages"].get(name)
        if tasks is None:
            return None
        return {task: Record(r["files"], r["result"]) for task, r in tasks.items()}

    def check(self) -> None:
        """Refuse a folder in which files of finished stages are missing or of another size."""
        removed = set(self.data.get("removed", ()))
        for name in self.data["stages"]:
            if name in removed:
                continue
            for record in (self.stage(name) or {}).values():
                for file, (size, _) in record.files.items():
                    if self.folder.size(file) != size:
                        raise ValueError(
                            f"{self.folder.url}/{file} is missing or not the file that stage "
                            f"{name!r} wrote; start again in an empty folder"
                        )

    def seal(self, name: str, records: Mapping[str, Record], instead_of: str | None = None) -> None:
        """Note that a stage is done, and remove the records that are now in the manifest.

        Files of the stage `instead_of`, which it continues, are removed.
        """
        old = self.data["stages"].pop(instead_of, {})
        self.data["stages"][name] = {
            task: {"files": r.files, "result": r.result} for task, r in records.items()
        }
        self._save()
        self.folder.remove(record_name(name, task) for task in records)
        for task in old.values():
            self.folder.remove(task["files"])

    def discard(self, name: str) -> None:
        """Remove the files of a finished stage that no later one needs."""
        if name in self.data.setdefault("removed", []):
            return
        self.data["removed"].append(name)
        self._save()
        for record in (self.stage(name) or {}).values():
            self.folder.remove(record.files)

    def note(self, name: str, value: Any) -> None:
        """Keep a result of the run."""
        self.data[name] = value
        self._save()

    def _save(self) -> None:
        self.folder.write(NAME, json.dumps(self.data, default=_plain).encode())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be kept in a manifest")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
