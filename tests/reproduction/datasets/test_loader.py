"""Data sets by name: the catalogue, the cache and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from reproduction.datasets import (
    SHIPPED,
    DataFileError,
    DownloadError,
    card,
    data_home,
    fetch,
    list_datasets,
    load,
)
from reproduction.datasets.cache import read_csv, write_csv
from reproduction.datasets.catalogue import Source
from reproduction.datasets.loader import shipped_file

NAMES = list_datasets()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.delenv("GDPA_DATA_HOME", raising=False)
    return tmp_path / "cache"


# --- the catalogue -------------------------------------------------------------------------------


def test_catalogue_is_the_papers_seventeen_and_cod_rna():
    assert len(NAMES) == 18
    assert NAMES[-1] == "cod-rna"


@pytest.mark.parametrize("name", NAMES)
def test_card_is_complete_and_consistent(name):
    c = card(name)
    assert c.name == name
    assert 0 < c.n_positive < c.n_samples
    assert c.shape == (c.n_samples, c.n_features)
    assert c.source
    assert c.license
    assert c.classes
    urls = [*c.urls, *(url for source in c.sources for url in source.urls)]
    assert all(url.startswith("https://") for url in urls)
    assert bool(urls) == (name != "WDBC")
    assert bool(c.sources) == (name not in SHIPPED and name != "WDBC")
    for digest in (c.csv_sha256, c.content_sha256):
        assert len(digest) == 64
        assert set(digest) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("given", "meant"), [("sonnar", "sonar"), ("madelone", "madelon"), ("monk2", "monk1")]
)
@pytest.mark.parametrize("function", [load, fetch, card])
def test_unknown_name_says_the_nearest(function, given, meant):
    with pytest.raises(ValueError, match=f"{given}.*did you mean '{meant}'"):
        function(given)


def test_case_of_the_name_does_not_matter():
    assert card("wdbc") is card("WDBC")


# --- the files of the cache ----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_set_is_that_of_its_card_and_is_written_with_its_checksum(paper_set, tmp_path, name):
    data = paper_set(name)
    assert data.X.shape == data.card.shape
    assert data.X.dtype == np.float64
    assert data.y.dtype == np.int8
    assert int((data.y == 1).sum()) == data.card.n_positive
    assert int((data.y == -1).sum()) == data.card.n_samples - data.card.n_positive
    assert np.isfinite(data.X).all()
    if name != "cod-rna":
        path = tmp_path / f"{name}.csv"
        write_csv(path, data.X, data.y)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == data.card.csv_sha256


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_shipped_sets_need_neither_cache_nor_network(home, name):
    data = load(name, data_home=home, download=False)
    assert not home.exists()
    path = fetch(name, data_home=home)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == data.card.csv_sha256


def test_terms_of_the_shipped_sets_name_each_with_creators_and_licence():
    text = shipped_file("TERMS.md").decode()
    assert "https://creativecommons.org/licenses/by/4.0/" in text
    rows = {line.split(" | ")[0][2:]: line for line in text.splitlines() if ".csv |" in line}
    assert set(rows) == {f"{name}.csv" for name in SHIPPED}
    for name in SHIPPED:
        assert len(rows[f"{name}.csv"].split(" | ")) == 4
        assert card(name).license.startswith("CC BY 4.0")


def test_notes_about_votes_and_ids_are_true(paper_set):
    assert paper_set("breast-cancer").X[:, 0].min() > 60000
    assert set(np.unique(paper_set("voting").X)) == {-1.0, 0.0, 1.0}


def test_notes_about_pima_are_true(paper_set):
    diabetes, pima = paper_set("diabetes"), paper_set("pima")
    np.testing.assert_array_equal(diabetes.y, -pima.y)
    low, span = diabetes.X.min(axis=0), np.ptp(diabetes.X, axis=0)
    # Six digits were kept. Nine cells are 0: f8 of eight rows, truly, and the end of row 402.
    difference = np.abs(2 * (diabetes.X - low) / span - 1 - pima.X) > 1e-5
    assert np.flatnonzero(difference.any(axis=1)).tolist() == [401]
    assert np.argwhere(pima.X == 0)[:, 1].tolist() == [7] * 9
    expected = np.delete(2 * (diabetes.X[401] - low) / span - 1, 2)
    np.testing.assert_allclose(pima.X[401, :7], expected, atol=1e-5)


def test_wdbc_needs_neither_cache_nor_network(home):
    data = load("WDBC", data_home=home, download=False)
    assert data.card.shape == data.X.shape
    assert not home.exists()
    # Malignant tumours are the bigger ones.
    assert data.X[data.y == 1, 0].mean() > data.X[data.y == -1, 0].mean()


def test_fetched_wdbc_has_the_catalogues_checksum(home):
    path = fetch("WDBC", data_home=home)
    assert path == home / "WDBC.csv"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == card("WDBC").csv_sha256
    assert load("WDBC", data_home=home).X.shape == (569, 30)
    assert fetch("WDBC", data_home=home) == path


def test_other_text_with_the_same_numbers_is_accepted(home):
    path = fetch("WDBC", data_home=home)
    text = path.read_text()
    path.write_bytes(text.replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(load("WDBC", data_home=home).y[:3], [1, 1, 1])


def test_compressed_and_plain_files_are_the_same(home):
    plain = fetch("WDBC", data_home=home)
    (home / "WDBC.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert load("WDBC", data_home=home, download=False).X.shape == (569, 30)


@pytest.mark.parametrize("variable", ["GDPA_DATA_HOME", "XDG_CACHE_HOME"])
def test_environment_names_the_cache(monkeypatch, tmp_path, variable):
    for name in ("GDPA_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv(variable, str(tmp_path))
    expected = tmp_path if variable == "GDPA_DATA_HOME" else tmp_path / "gdpa"
    assert data_home() == expected
    assert data_home("elsewhere") == Path("elsewhere")


# --- bad files -----------------------------------------------------------------------------------


@pytest.fixture
def wdbc(home):
    return fetch("WDBC", data_home=home)


def test_csv_cut_inside_a_line_names_the_line(wdbc, home):
    lines = wdbc.read_text().splitlines()
    wdbc.write_text("\n".join(lines[:100]) + "\n" + lines[100][:20])
    with pytest.raises(DataFileError, match=r"WDBC\.csv is not WDBC: .* columns changed from 31"):
        load("WDBC", data_home=home)


def test_csv_cut_between_lines_names_the_last_line(wdbc, home):
    wdbc.write_text("\n".join(wdbc.read_text().splitlines()[:100]) + "\n")
    with pytest.raises(
        DataFileError, match=r"shape \(99, 30\), expected \(569, 30\); is it cut off"
    ):
        load("WDBC", data_home=home)


def test_compressed_file_cut_off(wdbc, home):
    packed = gzip.compress(wdbc.read_bytes())
    (home / "WDBC.csv.gz").write_bytes(packed[: len(packed) // 2])
    wdbc.unlink()
    with pytest.raises(DataFileError, match="cut off or damaged"):
        load("WDBC", data_home=home)


@pytest.mark.parametrize("content", [b"", b"\n", b"<html>not found</html>\n", b"a,b\n1,2\n"])
def test_file_of_another_kind_is_refused_at_its_header(wdbc, home, content):
    wdbc.write_bytes(content)
    with pytest.raises(DataFileError, match=r"line 1 is not the header f1,\.\.\.,f30,label"):
        load("WDBC", data_home=home)


@pytest.mark.filterwarnings("ignore:loadtxt")
def test_header_without_samples(wdbc, home):
    wdbc.write_text(wdbc.read_text().splitlines()[0] + "\n")
    with pytest.raises(DataFileError, match=r"WDBC\.csv is not WDBC"):
        load("WDBC", data_home=home)


@pytest.mark.parametrize("cell", ["x", "nan", "inf", ""])
def test_cell_that_is_no_finite_number_is_rejected(wdbc, home, cell):
    lines = wdbc.read_text().splitlines()
    cells = lines[4].split(",")
    cells[2] = cell
    lines[4] = ",".join(cells)
    wdbc.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataFileError, match=r"at row 3, column 3|must be finite"):
        load("WDBC", data_home=home, verify=False)


def test_label_outside_plus_minus_one_is_rejected(wdbc, home):
    lines = wdbc.read_text().splitlines()
    lines[7] = lines[7].rpartition(",")[0] + ",2"
    wdbc.write_text("\n".join(lines) + "\n")
    for verify in (True, False):
        with pytest.raises(DataFileError, match="labels -1 or 1"):
            load("WDBC", data_home=home, verify=verify)


def test_changed_number_is_refused_unless_verify_is_off(wdbc, home):
    text = wdbc.read_text()
    wdbc.write_text(text.replace("17.99", "18.99", 1))
    with pytest.raises(DataFileError, match=r"checksum differs.*verify=False"):
        load("WDBC", data_home=home)
    assert load("WDBC", data_home=home, verify=False).X[0, 0] == 18.99


def test_other_order_and_reversed_signs_are_rejected(wdbc, home):
    X, y = read_csv(wdbc, card("WDBC"))
    for samples in ((X[::-1], y[::-1]), (X, -y)):
        write_csv(wdbc, *samples)
        with pytest.raises(DataFileError, match="checksum differs"):
            load("WDBC", data_home=home)


# --- what cannot be had --------------------------------------------------------------------------


def test_absent_set_without_download_says_what_to_do(home):
    with pytest.raises(FileNotFoundError) as error:
        load("diabetes", data_home=home, download=False)
    message = str(error.value)
    assert card("diabetes").sources[0].urls[0] in message
    assert str(home / "raw" / "diabetes" / "libsvm" / "diabetes") in message


def test_unreachable_source_says_what_to_do(home, monkeypatch, rehome):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("reproduction.datasets.download.time.sleep", lambda seconds: None)
    url = "http://127.0.0.1:9/diabetes.data"  # the discard port: nobody listens
    rehome("diabetes", [Source((url,), "libsvm")])
    with pytest.raises(DownloadError) as error:
        load("diabetes", data_home=home)
    message = str(error.value)
    assert f"download {url}" in message
    assert str(home / "raw" / "diabetes" / "libsvm" / "diabetes.data") in message
    assert "diabetes.csv" in message


needs_permissions = pytest.mark.skipif(
    os.name == "nt" or (hasattr(os, "geteuid") and os.geteuid() == 0),
    reason="this user may write everywhere",
)


@needs_permissions
@pytest.mark.parametrize("name", ["WDBC", "haberman"])
def test_folder_without_write_permission(tmp_path, name):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="Permission denied"):
            fetch(name, data_home=tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_cache_that_is_a_file_is_refused(tmp_path):
    path = tmp_path / "occupied"
    path.write_text("")
    for name in ("WDBC", "haberman"):
        with pytest.raises(FileExistsError):
            fetch(name, data_home=path)


def test_file_is_written_whole_or_not_at_all(home, monkeypatch):
    path = fetch("WDBC", data_home=home)
    before = path.read_bytes()

    def fail(source, target):
        raise OSError(28, "full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        fetch("WDBC", data_home=home, force=True)
    assert path.read_bytes() == before
    assert [p.name for p in home.iterdir() if p.suffix != ".lock"] == ["WDBC.csv"]


def test_folder_of_files_is_never_written_to(tmp_path):
    copy = tmp_path / "copy"
    fetch("haberman", data_home=copy)
    load("haberman", data_home=copy)
    assert [p.name for p in copy.iterdir()] == ["haberman.csv"]
