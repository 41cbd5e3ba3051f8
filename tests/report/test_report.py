"""The report: complete, self-contained, and safe against whatever the data hold."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from gdpa import GDPAClassifier
from gdpa.report import gather, render
from gdpa.report.charts import _ticks, histogram
from gdpa.report.evaluation import confusion, left_out_labels
from gdpa.report.layout import picture
from gdpa.report.markup import escape
from gdpa.tables import TableEncoder

VOID = {"meta", "link", "br", "rect", "path", "img", "hr"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "&lt;b&gt; & co",
    "</style><script src=//evil.example/x.js></script>",
    "]]><!--",
    "\u202egnp.exe",
    "javascript:alert(1)",
]


class Page(HTMLParser):
    """The tags of a page, checked for balance."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.text, self.charts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "svg" and dict(attrs).get("role") == "img":
            self.charts.append({"attrs": dict(attrs), "title": "", "desc": ""})
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.charts and self.open and self.open[-1] in ("title", "desc"):
            self.charts[-1][self.open[-1]] += data


def hostile_page(classes=2):
    rng = np.random.default_rng(0)
    n = 60
    group = np.arange(n) % classes
    X = rng.normal(size=(n, 4)) + 5.0 * group[:, None]
    names = [HOSTILE[g] for g in range(classes)]
    y = np.array([names[g] if i < 6 * classes else None for i, g in enumerate(group)], dtype=object)
    model = GDPAClassifier(unlabeled=None, n_neighbors=5).fit(X, y)
    words = np.array([HOSTILE[i % len(HOSTILE)] for i in range(n)], dtype=object)
    table = dict(zip((*HOSTILE[:4], "word"), (*X.T, words), strict=True))
    data = gather(
        model,
        X,
        title=HOSTILE[0],
        asked={HOSTILE[1]: HOSTILE[2]},
        command=f"gdpa fit '{HOSTILE[4]}'",
        notes=HOSTILE,
        table=table,
        columns=TableEncoder().fit(table).columns_,
        ids=[HOSTILE[i % len(HOSTILE)] for i in range(n)],
    )
    return render(data), data, model


@pytest.fixture(scope="module")
def hostile():
    return hostile_page()


def test_nothing_of_the_data_becomes_markup(hostile):
    text, _, _ = hostile
    page = Page(text)
    assert page.open == []
    for tag, attributes in page.tags:
        assert tag not in ("script", "img", "iframe", "object", "embed", "form", "base", "b-co")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("href", "src", "action", "xlink:href"):
                assert value.startswith(("#", "data:,"))
    shown = "".join(page.text)
    for words in HOSTILE[:6]:  # and none of it is lost
        assert words in shown
    assert "\u202e" not in text


def test_the_page_refers_to_nothing_outside_itself(hostile):
    text, _, _ = hostile
    policy = next(a["content"] for t, a in Page(text).tags if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "script-src" not in policy  # falls back to none
    head = text[: text.index("<body>")]
    assert "url(" not in head
    assert "@import" not in head
    assert '<meta name="viewport"' in head
    assert "prefers-color-scheme:dark" in head


def test_every_chart_has_a_text_alternative_and_ids_are_unique(hostile):
    text, _, _ = hostile
    page = Page(text)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    titles = [chart["title"] for chart in page.charts]
    assert len(titles) == 4
    for chart in page.charts:
        assert chart["title"]
        assert chart["desc"]
        assert set(chart["attrs"]["aria-labelledby"].split()) <= set(ids)
    for link in (a["href"] for t, a in page.tags if t == "a"):
        assert link[1:] in ids


def test_all_sections_are_there_and_state_the_numbers_of_the_model(hostile):
    text, data, model = hostile
    for heading in (
        "What was asked",
        "Result",
        "Label these next",
        "How far to trust it",
        "The graph",
        "The data",
        "Certificate",
        "How to make this again",
    ):
        assert f">{heading}</h2>" in text
    assert sum(data.labeled_counts) == 12
    assert sum(data.predicted_counts) == 48
    assert data.graph.n_edges * 2 == model.graph_.nnz
    assert data.certificate is not None
    assert data.certificate.lower_bound <= data.certificate.objective
    assert len(data.questions) == 20


def test_agreement_along_edges_by_definition():
    W = np.array([[0, 3.0, 1, 0], [3, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0]])
    model = GDPAClassifier(graph="precomputed", unlabeled=None)
    model.fit(W, np.array(["a", "a", "b", "b"], dtype=object))
    graph = gather(model, None).graph
    assert graph.agreement == pytest.approx(5 / 7)  # weights 3 + 2 within, 1 + 1 across
    assert graph.predicted_agreement == pytest.approx(5 / 7)
    assert graph.chance == pytest.approx(0.5)
    assert (graph.n_components, graph.isolated) == (1, 0)


def test_many_classes_and_precomputed_graphs_are_drawn():
    text, data, _ = hostile_page(classes=5)
    Page(text)
    assert data.certificate is None
    assert "two classes" in text
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 3)) + 4 * np.eye(3)[np.arange(240) % 3]
    y = np.where(np.arange(240) < 120, np.arange(240) % 12, -1)
    many = GDPAClassifier(n_neighbors=6).fit(X, y)
    assert "other classes" in render(gather(many, X))


def test_confusion_counts_left_out_labels(hostile):
    _, _, model = hostile
    checked = left_out_labels(model)
    counts = confusion(checked, 2)
    assert counts.sum() == 12
    for i in range(2):
        for j in range(2):
            assert counts[i, j] == ((checked.truth == i) & (checked.predicted == j)).sum()
    few = GDPAClassifier(n_neighbors=2).fit([[0.0], [1], [5], [6]], [0, -1, -1, 1])
    assert left_out_labels(few) is None
    assert "too few labels" in render(gather(few, np.array([[0.0], [1], [5], [6]])))


def test_a_large_graph_is_sampled_and_small_ones_are_whole(random_graph):
    W = random_graph(40, 0)
    whole = picture(W, None, keep=np.array([3]))
    assert whole.nodes.tolist() == list(range(40))
    assert whole.positions.min() >= 0
    assert whole.positions.max() <= 1
    sample = picture(W, None, keep=np.array([3, 17]), most=24)
    assert sample.nodes.size == 24
    assert {3, 17} <= set(sample.nodes.tolist())
    assert sample.edges.max(initial=0) < 24
    same = picture(W, np.ones((40, 2)), keep=np.array([3]), most=12)
    assert np.isfinite(same.positions).all()


def test_bars_add_up_to_the_number_of_values():
    values = np.array([0.0, 0.1, 0.5, 0.9, 1.0, 1.0])
    chart = histogram("h", values, np.linspace(0, 1, 5), title="t", axis="x", marked_below=0.5)
    described = chart[chart.index("Histogram of x. ") : chart.index("</desc>")]
    assert sum(int(part.rsplit(": ", 1)[1]) for part in described.split(", ")) == values.size


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.5, 1), (9.5, 38.5), (0, 434), (3, 3)])
def test_ticks_are_inside_and_even(low, high):
    ticks = _ticks(low, high)
    assert 1 <= len(ticks) <= 8
    assert all(low - 1e-9 <= t <= high + 1e-9 for t in ticks)
    assert np.allclose(np.diff(ticks, 2), 0)


def test_escape_cuts_endless_text_and_controls():
    assert len(escape("x" * 10_000)) == 200
    assert escape("a\0b\x1b") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert escape("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
