"""Files are whole or not there; locks end with their owner."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from gdpa.files import LockedError, lock, lock_stream, write_text, written_whole

linux = pytest.mark.skipif(os.name != "posix", reason="needs pipes, signals and fork")


def _fail_half_way(target):
    with written_whole(target) as staged:
        staged.write_text("ne")
        raise RuntimeError("half way")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError, match="half way"):
        _fail_half_way(target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_no_file_of_the_users_is_touched(tmp_path):
    target = tmp_path / "a.txt"
    beside = [tmp_path / f"a.txt.{end}" for end in ("part", "partial", "tmp")]
    for path in beside:
        path.write_text("mine")
    write_text(target, "new")
    assert [path.read_text() for path in beside] == ["mine"] * 3


@linux
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_a_replaced_file_keeps_its_mode_and_owner(tmp_path, mode):
    target = tmp_path / "a.txt"
    target.write_text("old")
    if os.geteuid() == 0:
        os.chown(target, 12345, 23456)
    target.chmod(mode)
    before = target.stat()
    write_text(target, "new")
    after = target.stat()
    assert target.read_text() == "new"
    assert stat.S_IMODE(after.st_mode) == mode
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


@linux
def test_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "plain").write_text("x")
    write_text(tmp_path / "new", "x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


@linux
def test_a_link_is_replaced_and_its_end_stays(tmp_path):
    victim, target = tmp_path / "victim", tmp_path / "a.txt"
    victim.write_text("mine")
    target.symlink_to(victim)
    write_text(target, "new")
    assert victim.read_text() == "mine"
    assert target.read_text() == "new"
    assert not target.is_symlink()


@linux
def test_a_pipe_receives_the_content_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_text(pipe, "through")
    reader.join(timeout=10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@linux
def test_a_device_stays_a_device():
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_folder_is_refused_and_a_missing_folder_named(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        write_text(tmp_path, "x")
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        write_text(tmp_path / "none" / "a.txt", "x")


@linux
def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("x")
    write_text(tmp_path / "ours", "x")
    assert (tmp_path / "ours").stat().st_mode == ordinary.stat().st_mode


def _write_and_wait(target: Path) -> None:
    with written_whole(target) as staged:
        staged.write_text("half")
        (target.parent / "ready").touch()
        time.sleep(60)


def _write_often(target: Path, word: str) -> None:
    for _ in range(60):
        write_text(target, word * 5000)


@linux
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    target = tmp_path / "a.txt"
    process = multiprocessing.get_context("fork").Process(target=_write_and_wait, args=(target,))
    process.start()
    while not (tmp_path / "ready").exists():
        time.sleep(0.005)
    write_text(tmp_path / "b.txt", "another writer leaves the folder of a living one alone")
    assert len(list(tmp_path.glob(".gdpa-*"))) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert len(list(tmp_path.glob(".gdpa-*"))) == 1
    write_text(target, "new")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt", "ready"]


@linux
def test_processes_that_write_one_file_do_not_meet(tmp_path):
    target = tmp_path / "a.txt"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(target, word)) for word in "abcd"]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        if target.exists():
            text = target.read_text()
            assert len(text) == 5000
            seen.add(text[0])
            assert text == text[0] * 5000
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert seen <= set("abcd")
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_lock_keeps_others_out_names_its_owner_and_goes(tmp_path):
    path = tmp_path / ".lock"
    with (
        lock(path),
        pytest.raises(LockedError, match=f"process {os.getpid()}"),
        lock(path, wait=False),
    ):
        pass
    assert not path.exists()
    with lock(path, wait=False):
        assert path.exists()


def _count_up(folder: Path) -> None:
    for _ in range(50):
        with lock(folder / ".lock"):
            number = int((folder / "n").read_text())
            time.sleep(0)
            (folder / "n").write_text(str(number + 1))


@linux
def test_one_owner_at_a_time_although_the_file_is_removed_each_time(tmp_path):
    (tmp_path / "n").write_text("0")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_count_up, args=(tmp_path,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (tmp_path / "n").read_text() == "200"


class Windows:
    """Locks as msvcrt has them: a region of a file, held by a handle."""

    LK_LOCK, LK_NBLCK = 1, 2

    def __init__(self):
        self.held = {}

    def locking(self, handle, mode, n_bytes):
        place = os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR), n_bytes
        owner = self.held.setdefault(place, handle)
        if owner != handle and _is_open(owner):
            raise PermissionError(errno.EACCES, "held")
        self.held[place] = handle  # whoever closes a file gives its locks back


def _is_open(handle):
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


def test_locks_without_fcntl(tmp_path, monkeypatch):
    windows = Windows()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    with open(tmp_path / "log", "a+b", buffering=0) as first:
        first.write(b"content")
        first.seek(3)
        lock_stream(first, wait=False)
        assert first.tell() == 3
        # No byte of the content is locked: others may read it.
        assert all(place > 2**20 for _, place, _ in windows.held)
    with lock(tmp_path / "lock", wait=False), pytest.raises(LockedError, match=str(os.getpid())):
        lock(tmp_path / "lock", wait=False).__enter__()
