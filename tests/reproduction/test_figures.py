"""Figures of the reproduction: axes with names and units, a legend, colours that stay apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from reproduction import figures
from reproduction.experiments import EXPERIMENTS
from reproduction.methods import METHODS
from reproduction.published import TABLE1, TABLE1_CELLS
from reproduction.store import Row

pytestmark = pytest.mark.slow

PAPER1 = {label: dict(zip(TABLE1_CELLS, row, strict=True)) for label, row in TABLE1.items()}
DATA = {
    "example": {
        "matrix": np.array([[2.0, -2.0, -1.0], [-2.0, 5.0, -2.0], [-1.0, -2.0, 4.0]]),
        "v": np.array([0.7, 0.5, 0.4]),
        "graphs": {"(a) line": [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]},
    },
    "table1": {"ours": PAPER1, "paper": PAPER1},
    "table2": {
        "means": [
            ("GDPA as published", {"min-max": (28.0, 28.21), "standardization": (27.0, 26.94)}),
            ("One-step vote", {"min-max": (27.3, None), "standardization": (26.8, None)}),
        ]
    },
    "runtime": {
        "ticks": ["sonar (42)", "madelon (400)"],
        "series": {"GDPA as written": [1.0, 5.0], "SDcut": [20.0, float("nan")]},
        "authors": {"GDPA": [4.0, 9.0], "SeDuMi": [150.0, 9000.0]},
    },
    "cod-rna": {
        "series": {
            ("full", "GDPA as written"): ([48, 95, 488], [1.0, 2.0, 9.0]),
            ("sparse", "GDPA as written"): ([488, 970, 4891], [1.0, 2.0, 9.0]),
        }
    },
    "bound": {"min-max": [(1.0, 2.0)], "standardization": [(10.0, 11.0)]},
}
UNITS = {
    "example": ("real part", "imaginary part"),
    "table1": ("σ", "(%)"),
    "table2": ("(%)", ""),
    "runtime": ("size", "(ms)"),
    "cod-rna": ("number of samples", "(ms)"),
    "bound": ("gap", "bound"),
}


MAKERS = {name: "_" + name.replace("-", "_") for name in DATA}


def drawn(name: str) -> Figure:
    figure = Figure(layout="constrained")
    getattr(figures, MAKERS[name])(figure, DATA[name])
    return figure


@pytest.mark.parametrize("name", DATA)
def test_axes_are_named_with_units_and_there_is_a_legend(name):
    figure = drawn(name)
    x_text = " ".join(axis.get_xlabel() for axis in figure.axes)
    y_text = " ".join(axis.get_ylabel() for axis in figure.axes)
    assert UNITS[name][0] in x_text
    assert UNITS[name][1] in y_text
    legends = figure.legends or [a.get_legend() for a in figure.axes if a.get_legend()]
    texts = [text.get_text() for legend in legends for text in legend.get_texts()]
    assert len(texts) >= 2 - (name == "cod-rna")
    assert len(texts) == len(set(texts)) * (2 if name == "example" else 1)  # one in each panel


def test_times_are_on_a_logarithmic_scale():
    for name in ("runtime", "cod-rna"):
        assert {axis.get_yscale() for axis in drawn(name).axes} == {"log"}
    assert {axis.get_xscale() for axis in drawn("cod-rna").axes} == {"log"}


def test_data_sets_stand_in_the_order_given_with_their_sizes():
    _, axis = drawn("runtime").axes
    assert [t.get_text() for t in axis.get_xticklabels()] == ["sonar (42)", "madelon (400)"]


def test_no_two_methods_of_a_figure_look_alike():
    labels = [spec.label for spec in METHODS.values() if spec.runtime]
    looks = [tuple(sorted(figures._look(label).items())) for label in labels]
    assert len(set(looks)) == len(labels)
    marked = [(look["color"], look["marker"]) for look in map(figures._look, labels)]
    assert len(set(marked)) == len(labels)  # apart without the line style too


# Machado, Oliveira, Fernandes (2009), severity 1, in linear RGB.
_BLINDNESS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def _linear(rgb: tuple[float, float, float]) -> np.ndarray:
    c = np.array(rgb)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    M = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(M) @ np.clip(linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", _BLINDNESS)
def test_colours_stay_apart_for_colour_blind_readers(kind):
    # 10 units of CIE Lab are a difference that is seen at a glance
    seen = [_lab(np.array(_BLINDNESS[kind]) @ _linear(to_rgb(c))) for c in figures.OKABE_ITO]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(distances) > 10


@pytest.mark.parametrize("name", DATA)
def test_files_are_written_without_a_display(name, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    path = figures.draw(name, DATA[name], tmp_path, "commit 0123456789ab")
    assert "commit 0123456789ab" in path.with_suffix(".svg").read_text()
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "<svg" in path.with_suffix(".svg").read_text()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", sorted(set(DATA) - {"example"}))
def test_without_rows_there_is_no_figure(name):
    assert EXPERIMENTS[name].figure([]) is None


def test_the_runtime_figure_shows_the_authors_times_with_ours():
    values = {"seconds": 1.0, "error_percent": 0.0}
    params = {"graph": "full", "labels": "one", "size": 95, "method": "gdpa-closed-form"}
    rows = [Row("cod-rna", params, "ok", values)]
    series = EXPERIMENTS["cod-rna"].figure(rows)["series"]
    assert series["full", "GDPA, linear program in closed form, one label"] == ([95], [1000.0])
    assert series["full", "authors' GDPA"][1][-1] == 7288.0
    assert series["full", "authors' SNS"][0] == series["full", "authors' GDPA"][0]
