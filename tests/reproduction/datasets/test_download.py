"""Downloads against a server on this machine: resume, retry, refuse."""

from __future__ import annotations

import bz2
import os
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gdpa import __version__
from reproduction.datasets import DownloadError, fetch, load
from reproduction.datasets.catalogue import Source
from reproduction.datasets.download import download

CONTENT = bytes(range(256)) * 2000


def test_file_arrives_whole(site, tmp_path):
    site.files["a"] = CONTENT
    path = download(site.url("a"), tmp_path / "a")
    assert path.read_bytes() == CONTENT
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_finished_file_is_not_downloaded_again(site, tmp_path):
    (tmp_path / "a").write_bytes(b"here already")
    assert download(site.url("a"), tmp_path / "a").read_bytes() == b"here already"
    assert site.requests == []


def test_interrupted_download_goes_on_where_it_stopped(site, tmp_path):
    site.files["a"] = CONTENT
    (tmp_path / "a.part").write_bytes(CONTENT[:1000])
    assert download(site.url("a"), tmp_path / "a").read_bytes() == CONTENT
    assert site.requests == [("a", "bytes=1000-")]


def test_connection_that_breaks_off_is_taken_up_again(site, tmp_path):
    site.files["a"] = CONTENT
    site.cut["a"] = [70_000, 130_000]
    assert download(site.url("a"), tmp_path / "a").read_bytes() == CONTENT
    asked = [asked for _, asked in site.requests]
    assert asked == [None, "bytes=70000-", "bytes=200000-"]


def test_part_survives_for_the_next_attempt(site, tmp_path):
    site.files["a"] = CONTENT
    site.cut["a"] = [100]
    with pytest.raises(DownloadError, match="broke off before the end"):
        download(site.url("a"), tmp_path / "a", retries=0)
    assert (tmp_path / "a.part").read_bytes() == CONTENT[:100]
    assert not (tmp_path / "a").exists()
    assert download(site.url("a"), tmp_path / "a").read_bytes() == CONTENT


def test_server_without_ranges_starts_again(site, tmp_path):
    site.files["a"] = CONTENT
    site.ranges = False
    (tmp_path / "a.part").write_bytes(b"x" * 1000)
    assert download(site.url("a"), tmp_path / "a").read_bytes() == CONTENT


def test_part_that_is_whole_already(site, tmp_path):
    site.files["a"] = CONTENT
    (tmp_path / "a.part").write_bytes(CONTENT)
    assert download(site.url("a"), tmp_path / "a").read_bytes() == CONTENT


def test_part_longer_than_the_file_is_thrown_away(site, tmp_path):
    site.files["a"] = CONTENT
    (tmp_path / "a.part").write_bytes(CONTENT + b"more")
    assert download(site.url("a"), tmp_path / "a").read_bytes() == CONTENT


def test_missing_file_is_asked_for_once(site, tmp_path):
    with pytest.raises(DownloadError, match=r"cannot download .*/a: the server answered 404"):
        download(site.url("a"), tmp_path / "a")
    assert len(site.requests) == 1


def test_overloaded_server_is_asked_again(site, tmp_path):
    site.files["a"] = CONTENT
    site.failures["a"] = [503, 429]
    assert download(site.url("a"), tmp_path / "a").read_bytes() == CONTENT
    assert len(site.requests) == 3


def test_only_web_addresses_are_accepted(tmp_path):
    with pytest.raises(ValueError, match=r"url='file:///etc/passwd' is not accepted"):
        download("file:///etc/passwd", tmp_path / "a")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_reported_as_such(site, tmp_path):
    site.files["a"] = CONTENT
    (tmp_path / "a.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        download(site.url("a"), tmp_path / "a")
    assert not (tmp_path / "a").exists()


# --- from a public home into the cache -----------------------------------------------------------


def as_libsvm(X, y, names=("+1", "-1")):
    lines = [
        " ".join([names[0] if sign > 0 else names[1],
                  *(f"{j}:{v!r}" for j, v in enumerate(row, 1) if v)])
        for row, sign in zip(X.tolist(), y.tolist(), strict=True)
    ]  # fmt: skip
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("names", [("1", "2"), ("2", "1"), ("R", "M")])
def test_fetched_set_is_the_catalogues_whatever_the_raw_labels(site, toy, tmp_path, names):
    _, X, y = toy([Source((site.url("toy.data"),), "libsvm")])
    site.files["toy.data"] = as_libsvm(X, y, names)
    data = load("toy", data_home=tmp_path)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["toy.csv"]
    site.files.clear()  # from now on offline
    np.testing.assert_array_equal(load("toy", data_home=tmp_path).X, X)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_parts_in_any_order_give_the_catalogues_order(site, toy, tmp_path, order):
    urls = tuple(site.url(f"toy.{k}") for k in range(3))
    _, X, y = toy([Source(urls, "libsvm")], n=12, compressed=True)
    pieces = [slice(0, 5), slice(5, 8), slice(8, 12)]
    for k, piece in enumerate(order):
        site.files[f"toy.{k}"] = as_libsvm(X[pieces[piece]], y[pieces[piece]])
    assert fetch("toy", data_home=tmp_path).name == "toy.csv.gz"
    data = load("toy", data_home=tmp_path, download=False)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)


def test_bzip2_is_unpacked(site, toy, tmp_path):
    _, X, y = toy([Source((site.url("toy.bz2"),), "libsvm")])
    site.files["toy.bz2"] = bz2.compress(as_libsvm(X, y))
    np.testing.assert_array_equal(load("toy", data_home=tmp_path).y, y)


def test_next_home_is_tried_when_the_first_fails(site, toy, tmp_path):
    _, X, y = toy([Source((site.url("gone"),), "columns"), Source((site.url("toy"),), "libsvm")])
    site.files["toy"] = as_libsvm(X, y)
    np.testing.assert_array_equal(load("toy", data_home=tmp_path).X, X)


def test_file_put_there_by_hand_is_used(site, toy, tmp_path):
    _, X, y = toy([Source((site.url("toy.data"),), "libsvm")])
    folder = tmp_path / "raw" / "toy" / "libsvm"
    folder.mkdir(parents=True)
    (folder / "toy.data").write_bytes(as_libsvm(X, y))
    np.testing.assert_array_equal(load("toy", data_home=tmp_path).X, X)
    assert site.requests == []


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: as_libsvm(X[:4], y[:4]), r"shape \(4, 2\) from \(6, 2\)"),
        (lambda X, y: as_libsvm(X, np.where(np.arange(6) == 0, 1, -1)), "checksum differs"),
        (lambda X, y: as_libsvm(X + 1, y), "checksum differs"),
        (lambda X, y: as_libsvm(X[::-1], y[::-1]), "checksum differs"),
        (lambda X, y: b"<html>maintenance</html>\n", "answered with a web page, not with the file"),
        (lambda X, y: b"\n <!DOCTYPE html><p>moved", "answered with a web page"),
        (lambda X, y: as_libsvm(X, y)[:-6] + b":", "line 6"),
        (lambda X, y: b"", "no samples"),
        (lambda X, y: as_libsvm(X, np.ones(6, int)), "expected two classes, got 1"),
    ],
)
def test_wrong_content_is_refused_and_not_kept(site, toy, tmp_path, spoil, message):
    _, X, y = toy([Source((site.url("toy.data"),), "libsvm")])
    site.files["toy.data"] = spoil(X, y)
    with pytest.raises(DownloadError, match=message):
        load("toy", data_home=tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    site.files["toy.data"] = as_libsvm(X, y)  # the server is well again
    np.testing.assert_array_equal(load("toy", data_home=tmp_path).X, X)


@pytest.mark.parametrize("right", [True, False])
def test_file_put_there_by_hand_is_never_deleted(site, toy, tmp_path, right):
    _, X, y = toy([Source((site.url("toy.data"),), "libsvm")])
    folder = tmp_path / "raw" / "toy" / "libsvm"
    folder.mkdir(parents=True)
    content = as_libsvm(X if right else X + 1, y)
    (folder / "toy.data").write_bytes(content)
    if right:
        load("toy", data_home=tmp_path)
    else:
        with pytest.raises(DownloadError, match="checksum differs"):
            load("toy", data_home=tmp_path)
    assert (folder / "toy.data").read_bytes() == content
    assert site.requests == []


def test_server_whose_name_is_not_known_is_asked_once(toy, tmp_path, monkeypatch):
    asked, slept = [], []

    def resolve(host, *args, **kwargs):
        asked.append(host)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr("reproduction.datasets.download.time.sleep", slept.append)
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)
    homes = [f"http://first.invalid/{k}" for k in range(3)]
    toy([Source((url,), "libsvm") for url in homes])
    with pytest.raises(
        DownloadError, match=r"first\.invalid cannot be found: no internet\?"
    ) as error:
        load("toy", data_home=tmp_path)
    assert asked == ["first.invalid"]
    assert slept == []
    assert str(error.value).count("\n") == 0


def test_agent_has_the_version(site, tmp_path):
    site.files["a"] = CONTENT
    download(site.url("a"), tmp_path / "a")
    assert site.agents == [f"gdpa/{__version__}"]


def test_missing_on_the_server_tells_what_to_do_by_hand(site, toy, tmp_path):
    toy([Source((site.url("toy.data"),), "libsvm")])
    with pytest.raises(DownloadError) as error:
        fetch("toy", data_home=tmp_path)
    assert "404" in str(error.value)
    assert f"download {site.url('toy.data')}" in str(error.value)
    assert str(tmp_path / "raw" / "toy" / "libsvm" / "toy.data") in str(error.value)


def test_killed_fetch_resumes(site, toy, tmp_path):
    _, X, y = toy([Source((site.url("toy.data"),), "libsvm")], n=600)
    text = as_libsvm(X, y)
    site.files["toy.data"] = text
    folder = tmp_path / "raw" / "toy" / "libsvm"
    folder.mkdir(parents=True)
    (folder / "toy.data.part").write_bytes(text[:777])
    np.testing.assert_array_equal(load("toy", data_home=tmp_path).X, X)
    assert site.requests == [("toy.data", "bytes=777-")]


def test_several_fetches_at_once_download_once(site, toy, tmp_path):
    pytest.importorskip("fcntl")
    _, X, y = toy([Source((site.url("toy.data"),), "libsvm")], n=600)
    site.files["toy.data"] = as_libsvm(X, y)
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch("toy", data_home=tmp_path), range(8)))
    assert set(paths) == {tmp_path / "toy.csv"}
    assert site.requests == [("toy.data", None)]
    np.testing.assert_array_equal(load("toy", data_home=tmp_path).X, X)
