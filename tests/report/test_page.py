"""The page: nothing of the data becomes markup, nothing outside is referred to."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.report import gather, render
from gdpa.report.page import _clean, environment, section

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
    assert len(titles) == 5
    for chart in page.charts:
        assert chart["title"]
        assert chart["desc"]
        assert set(chart["attrs"]["aria-labelledby"].split()) <= set(ids)
    for link in (a["href"] for t, a in page.tags if t == "a"):
        assert link[1:] in ids


def test_all_sections_are_there_and_state_the_numbers_of_the_model(hostile):
    text, data, model = hostile
    shown = re.findall(r">([^<]+)</h2>", text)
    assert shown == [
        "Label these next",
        "Model weights and column importance",
        "Predictions",
        "Accuracy in detail",
        "Graph",
        "Data",
        "Certificate",
        "How to reproduce this",
    ]
    assert sum(data.labeled_counts) == 12
    assert sum(data.predicted_counts) == 48
    assert data.graph.n_edges * 2 == model.graph_.nnz
    assert data.certificate is not None
    assert data.certificate.lower_bound <= data.certificate.objective
    assert len(data.questions) == 20


def test_the_verdict_comes_first_and_what_few_need_is_folded(hostile):
    text, data, _ = hostile
    verdict = text.index("Accuracy: about")
    assert verdict < text.index("<b>Next:</b>") < text.index("<nav") < text.index("<h2")
    assert text.index(data.fingerprint) > text.index(">How to reproduce this</h2>")
    folded = re.findall(r"<details><summary><h2[^>]*>([^<]+)<", text)
    assert folded == ["Accuracy in detail", "Graph", "Data", "Certificate", "How to reproduce this"]


def test_without_held_out_labels_no_row_is_sure():
    X = np.vstack([np.zeros((20, 2)), np.full((20, 2), 9.0)])
    X += np.random.default_rng(0).normal(size=X.shape)
    y = np.full(40, -1)
    y[[0, 20]] = 0, 1
    with pytest.warns(UserWarning, match="too few to hold any out"):
        model = CommitteeClassifier().fit(X, y)
    data = gather(model, X, sure=0.5)
    assert data.n_unsure == 38
    text = render(data)
    assert "Accuracy: unknown" in text
    assert ">Accuracy in detail<" not in text


def test_many_classes_and_precomputed_graphs_are_drawn(hostile_of_five):
    text, data, _ = hostile_of_five
    Page(text)
    assert data.certificate is None
    assert "Certificate" not in text
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 3)) + 4 * np.eye(3)[np.arange(240) % 3]
    y = np.where(np.arange(240) < 120, np.arange(240) % 12, -1)
    many = CommitteeClassifier(n_neighbors=6).fit(X, y)
    assert "other classes" in render(gather(many, X))


def test_text_is_cleaned_truncated_and_escaped_wherever_a_template_prints_it():
    assert len(_clean("x" * 10_000)) == 2000
    assert _clean("a\0b\x1b\u202e") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    shown = environment().from_string("{{ text }}|{{ text|short(3) }}").render(text="<&>\"'\0")
    assert (
        shown == "&lt;&amp;&gt;&#34;&#39;\N{REPLACEMENT CHARACTER}|&lt;&amp;\N{HORIZONTAL ELLIPSIS}"
    )


def test_sections_of_the_caller_are_escaped_and_linked(hostile):
    _, data, _ = hostile
    sections = [
        section("a", "x < y", "<p>{{ text }}</p>", text="<i>"),
        section('"', "z", "{{ html.table(['h'], [['<u>']], caption='c') }}"),
    ]
    text = render(data, first=sections)
    assert Page(text).open == []
    assert text.count("<i>") == text.count("<u>") == 0
    assert "<p>&lt;i&gt;</p>" in text
    assert '<a href="#a">x &lt; y</a>' in text
    assert '<section id="a" aria-labelledby="a-h">' in text
    assert 'id="&#34;"' in text


def test_a_single_graph_has_no_weights_and_says_what_held_out_labels_contradict():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(80, 3)), np.where(np.arange(80) < 40, rng.integers(0, 3, 80), -1)
    with pytest.warns(UserWarning, match="labels"):
        noise = GraphClassifier().fit(X, labels)
    data = gather(noise, X)
    assert data.committee is None
    text = render(data)
    assert "Model weights and column importance" not in text
    assert data.cautions
    assert text.count('class="caution"') == len(data.cautions)
