"""The format of the log: numbered lines with a checksum, found again whatever happens around them.

A line is a JSON object ``{"n": 7, ..., "sum": "0123456789abcdef"}``. The checksum covers all other
bytes of the line and the description of the data (number of rows, fingerprint, seed). So a changed
line is found, and so is a line that belongs to different data, even if the first line of the file,
which describes the data, is damaged.

Lines are found by their first key and their checksum, not by line ends. An undamaged line next to a
damaged one is therefore always read, even if the line end between them is gone. Numbers reveal
lines that were removed, repeated or moved. Only one change leaves no trace: that the last lines
were removed exactly at a line end.

Version 1 had neither numbers nor checksums. Its lines are read if they are events, and the journal
then writes the file again in the new format.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

KIND = "gdpa labels"
VERSION = 2
# A quote inside a JSON text is escaped, so neither pattern can occur inside a text.
_START = re.compile(rb'\{"n": \d+, ')
_SUM = b', "sum": "'
_END = re.compile(rb', "sum": "[0-9a-f]{16}"\}')
_DIGITS = 16  # hexadecimal digits of a checksum

Event = dict[str, Any]
Accepts = Callable[[Mapping[str, Any]], bool]


class NotALog(ValueError):
    """The content is not a log of labels, or not one of these data."""


@dataclass(frozen=True)
class Damage:
    """A place of a log that was not used.

    Parameters
    ----------
    line : int
        Number of the line, from 1.
    reason : str
        What is wrong with it.
    content : bytes
        The line; empty if it is missing.
    """

    line: int
    reason: str
    content: bytes = b""

    def __str__(self) -> str:
        shown = f": {self.content[:60]!r}" if self.content else ""
        return f"line {self.line} {self.reason}{shown}"


@dataclass(frozen=True)
class LogContent:
    """The content of a log.

    Parameters
    ----------
    events : list of dict
        Events with their number ``n``, in the order of the numbers.
    damage : list of Damage
        What was not used, in the order of the file.
    end : int
        Size of the part before an incomplete last line.
    tail : bytes
        The incomplete last line.
    next_number : int
        Number of the next event.
    lost : list of int
        Numbers of events that are missing.
    version : int
        Version of the format.
    """

    events: list[Event]
    damage: list[Damage]
    end: int
    tail: bytes
    next_number: int
    lost: list[int]
    version: int


def data_key(about: Mapping[str, Any]) -> bytes:
    """Return the bytes that tie the checksums to the data."""
    return json.dumps(dict(about), sort_keys=True).encode()


def encode_line(event: Mapping[str, Any], number: int, key: bytes) -> bytes:
    """Return an event as a line of the log, with number and checksum."""
    others = {name: value for name, value in event.items() if name not in ("n", "sum")}
    body = {"n": number, **others}
    text = json.dumps(body, ensure_ascii=True).encode()
    return text[:-1] + _SUM + _checksum(text, key) + b'"}\n'


def encode_header(about: Mapping[str, Any], lost: list[int] | None = None) -> bytes:
    """Return the first line, which describes the data."""
    head: Event = {"kind": KIND, "version": VERSION, **about}
    if lost:
        head["lost"] = lost
    return encode_line(head, 0, b"")


def _checksum(text: bytes, key: bytes) -> bytes:
    """Return the checksum of a line without its last key."""
    return hashlib.sha256(key + text).hexdigest()[:_DIGITS].encode()


def _verified(line: bytes, key: bytes) -> Event | None:
    """Return the event of a line whose checksum is right, or None."""
    place = len(line) - len(_SUM) - _DIGITS - len(b'"}')
    text = line[:place] + b"}"
    expected = line[place + len(_SUM) : -2]
    for candidate in (key, b""):
        if _checksum(text, candidate) == expected:
            event: Event = json.loads(text)
            # Only the first line may do without the data: it is what tells them apart.
            return event if candidate or event["n"] == 0 else None
    return None


@dataclass(frozen=True)
class _Found:
    """An event of the file, and where it is."""

    start: int
    end: int
    event: Event


def read_log(
    content: bytes,
    about: Mapping[str, Any],
    *,
    accepts: Accepts | None = None,
    trust_data: bool = False,
) -> LogContent:
    """Read all undamaged events of a log.

    Parameters
    ----------
    content : bytes
        The file.
    about : mapping
        Values that identify the data.
    accepts : callable, optional
        Returns whether an event is valid; others count as damage.
    trust_data : bool, default=False
        Whether to read a log of version 1 whose first line is damaged. Nothing else in such a log
        says which data it belongs to.

    Returns
    -------
    LogContent
        Events and damage.

    Raises
    ------
    NotALog
        If no line is one of a log of these data.
    """
    found = _whole_lines(content, data_key(about))
    first = _object(content.partition(b"\n")[0])
    if found:
        if found[0].event["n"] == 0:
            _check_data(found[0].event, about)
        return _read_numbered(content, found, accepts)
    if first is not None and first.get("kind") == KIND and first.get("version") != VERSION:
        _check_data(first, about)
    elif not (trust_data and _has_events(content, accepts)):
        raise NotALog("is not a log of labels; it was not changed")
    return _read_version_1(content, accepts, head_is_damaged=first is None)


def _read_numbered(content: bytes, found: list[_Found], accepts: Accepts | None) -> LogContent:
    """Read a log whose lines with a right checksum are `found`."""
    log = _Report(content)
    head = found[0].event if found[0].event["n"] == 0 else None
    lost = [] if head is None else [int(n) for n in head.get("lost", ())]
    events: dict[int, _Found] = {}
    tail_start = len(content)
    end = 0
    for item in found:
        log.between(end, item.start)
        end = item.end
        number = item.event["n"]
        line = content[item.start : item.end]
        if number == 0:
            if item is not found[0]:
                log.report(item.start, "repeats the first line", line)
        elif number in events:
            log.report(item.start, f"repeats answer {number}", line)
        elif accepts is not None and not accepts(item.event):
            log.report(item.start, "is not an event", line)
        else:
            if number < max(events, default=0):
                log.report(item.start, f"is out of order: it is answer {number}")
            events[number] = item
    rest = content[end:].removeprefix(b"\r").removeprefix(b"\n")
    if rest:
        tail_start = len(content) - len(rest.rpartition(b"\n")[2])
        log.between(end, tail_start)
        if tail_start < len(content):
            log.report(tail_start, "is incomplete", content[tail_start:])
    log.report_missing(events, lost, start=0 if head is None else found[0].end)
    numbers = sorted(events)
    last = max(numbers, default=0)
    last_place = events[last].end if last else 0
    return LogContent(
        events=[events[n].event for n in numbers],
        damage=log.sorted(),
        end=tail_start,
        tail=content[tail_start:],
        # A damaged last line had a number, too.
        next_number=1 + max([last, *lost]) + sum(p >= last_place for p, _ in log.damage),
        lost=sorted({*lost, *range(1, last + 1)} - set(numbers)),
        version=VERSION,
    )


class _Report:
    """Collects the damage of a log, with line numbers."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.damage: list[tuple[int, Damage]] = []
        self._line_ends = [match.start() for match in re.finditer(b"\n", content)]

    def report(self, place: int, reason: str, line: bytes = b"") -> None:
        """Add what is wrong at a place of the file."""
        number = 1 + bisect_left(self._line_ends, place)
        self.damage.append((place, Damage(number, reason, line)))

    def between(self, start: int, stop: int) -> None:
        """Report what is between two undamaged lines, except one line end."""
        gap = self.content[start:stop]
        if start:
            if not gap:
                self.report(start, "has lost its line end")
            rest = gap.removeprefix(b"\r").removeprefix(b"\n")
            start += len(gap) - len(rest)
            gap = rest
        for line in gap.removesuffix(b"\n").split(b"\n") if gap else ():
            self.report(start, "is damaged", line)
            start += len(line) + 1

    def report_missing(self, events: Mapping[int, _Found], lost: list[int], *, start: int) -> None:
        """Report missing numbers, unless there is damage where they should be."""
        places = sorted(place for place, _ in self.damage)
        before = 0
        end = start
        for number in sorted(events):
            item = events[number]
            missing = [n for n in range(before + 1, number) if n not in lost]
            low = min(end, item.start)
            high = max(end, item.start)
            if missing and bisect_right(places, high) == bisect_left(places, low):
                reason = f"follows {len(missing)} missing answers ({missing[0]} to {missing[-1]})"
                self.report(item.start, reason)
            before = number
            end = item.end

    def sorted(self) -> list[Damage]:
        """Return the damage in the order of the file."""
        return [damage for _, damage in sorted(self.damage, key=lambda d: d[0])]


def _whole_lines(content: bytes, key: bytes) -> list[_Found]:
    """Return the lines with a right checksum, in the order of the file."""
    starts = [match.start() for match in _START.finditer(content)]
    found: list[_Found] = []
    for match in _END.finditer(content):
        least = found[-1].end if found else 0
        line_start = max(least, content.rfind(b"\n", least, match.start()) + 1)
        nearest = bisect_right(starts, match.start()) - 1
        first = bisect_left(starts, line_start)
        # An undamaged line begins where the line begins; behind a lost line end, at the last
        # possible place.
        for place in dict.fromkeys((first, nearest)):
            if not 0 <= place < len(starts) or not line_start <= starts[place] < match.start():
                continue
            event = _verified(content[starts[place] : match.end()], key)
            if event is not None:
                found.append(_Found(starts[place], match.end(), event))
                break
    return found


def _read_version_1(
    content: bytes, accepts: Accepts | None, *, head_is_damaged: bool
) -> LogContent:
    """Read a log without numbers and checksums."""
    *lines, tail = content.split(b"\n")
    damage = [Damage(1, "is damaged", lines[0])] if head_is_damaged and lines else []
    events: list[Event] = []
    for i, line in enumerate(lines[1:], 2):
        event = _object(line)
        if event is not None and (accepts is None or accepts(event)):
            event.pop("sum", None)
            events.append({**event, "n": len(events) + 1})
        else:
            damage.append(Damage(i, "is damaged" if event is None else "is not an event", line))
    if tail:
        damage.append(Damage(len(lines) + 1, "is incomplete", tail))
    end = len(content) - len(tail)
    return LogContent(events, damage, end, tail, len(events) + 1, [], version=1)


def _object(line: bytes) -> Event | None:
    """Return the JSON object of a line, or None."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _has_events(content: bytes, accepts: Accepts | None) -> bool:
    """Return whether a line of version 1 is an event."""
    found = [_object(line) for line in content.split(b"\n")[1:]]
    return any(e is not None and "do" in e and (accepts is None or accepts(e)) for e in found)


def _check_data(head: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Raise NotALog if the first line has another version or describes other data."""
    if head.get("version") not in (1, VERSION):
        raise NotALog(
            f"has version {head.get('version')!r}; this release reads versions 1 and {VERSION}"
        )
    for name, value in about.items():
        if head.get(name) != value:
            raise NotALog(
                f"belongs to different data: {name} is {head.get(name)!r} there, {value!r} here"
            )
