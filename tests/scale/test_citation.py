"""Citation networks are read from archives as the LINQS group lays them out."""

import io
import tarfile

import numpy as np
import pytest

from benchmarks import citation as module
from benchmarks.citation import load_citation
from reproduction.datasets import DataFileError


def _archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.fixture
def small(monkeypatch):
    def expect(name, shape, classes, edges):
        old = module._SOURCES[name]
        new = module._Source(old.url, old.nodes, old.links, shape, classes, edges)
        monkeypatch.setattr(module, "_SOURCES", {**module._SOURCES, name: new})

    return expect


def test_cora_layout(tmp_path, small):
    small("cora", (3, 2), 2, 2)
    nodes = "p1 1 0 A\np2 0 1 B\np3 1 1 A\n"
    links = "p1 p2\np2 p1\np2 p3\np3 p3\np1 gone\n"
    _archive(tmp_path / "cora.tgz", {"cora/cora.content": nodes, "cora/cora.cites": links})
    network = load_citation("cora", data_dir=tmp_path)
    assert network.y.tolist() == ["A", "B", "A"]
    assert network.X.toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
    expected = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert network.adjacency.toarray().tolist() == expected


def test_pubmed_layout(tmp_path, small):
    small("pubmed", (2, 2), 2, 1)
    nodes = (
        "NODE\tpaper\ncat=1,2\tnumeric:w-a:0.0\tnumeric:w-b:0.0\tsummary\n"
        "11\tlabel=1\tw-a=0.5\tsummary=w-a\n12\tlabel=2\tw-b=0.25\tsummary=w-b\n"
    )
    links = "DIRECTED\tcites\nNO_FEATURES\n1\tpaper:11\t|\tpaper:12\n"
    files = {
        "data/Pubmed-Diabetes.NODE.paper.tab": nodes,
        "data/Pubmed-Diabetes.DIRECTED.cites.tab": links,
    }
    _archive(tmp_path / "Pubmed-Diabetes.tgz", files)
    network = load_citation("pubmed", data_dir=tmp_path)
    np.testing.assert_allclose(network.X.toarray(), [[0.5, 0], [0, 0.25]])
    assert network.y.tolist() == ["1", "2"]
    assert network.adjacency.nnz == 2


def test_another_network_is_refused(tmp_path):
    _archive(tmp_path / "cora.tgz", {"cora.content": "p 1 A\n", "cora.cites": ""})
    with pytest.raises(DataFileError, match="is not cora as it is known"):
        load_citation("cora", data_dir=tmp_path)


@pytest.mark.parametrize("content", [b"", b"<html>not here</html>"])
def test_a_page_in_place_of_an_archive(tmp_path, content):
    (tmp_path / "citeseer.tgz").write_bytes(content)
    with pytest.raises(DataFileError, match="not a readable archive"):
        load_citation("citeseer", data_dir=tmp_path)


def test_missing_members_and_unknown_names(tmp_path):
    _archive(tmp_path / "cora.tgz", {"cora.content": "p 1 A\n"})
    with pytest.raises(DataFileError, match=r"has no file cora\.cites"):
        load_citation("cora", data_dir=tmp_path)
    with pytest.raises(ValueError, match="cora"):
        load_citation("coar", data_dir=tmp_path)
