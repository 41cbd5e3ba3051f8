"""The one document: headings escaped, pictures carried along, a policy that forbids the rest."""

from __future__ import annotations

import base64

from gdpa.report.document import POLICY, document, picture_file


def test_headings_and_titles_are_escaped_and_sections_are_linked():
    page = document("<b>", [("a", "x < y", "<p>safe</p>"), ('"', "z", "")], footer="<p>end</p>")
    assert page.count("<b>") == 0
    assert "&lt;b&gt;" in page
    assert '<a href="#a">x &lt; y</a>' in page
    assert '<section id="a" aria-labelledby="a-h">' in page
    assert 'id="&quot;"' in page
    assert "<p>safe</p>" in page
    assert page.rstrip().endswith("<footer><p>end</p></footer></body></html>")


def test_the_policy_forbids_scripts_and_the_network():
    assert f'content="{POLICY}"' in document("t", [])
    assert POLICY.startswith("default-src 'none'")
    assert "script-src" not in POLICY
    assert "http" not in POLICY


def test_pictures_are_carried_along(tmp_path):
    path = tmp_path / "p.png"
    path.write_bytes(b"\x89PNG")
    html = picture_file(path, '"quoted"')
    assert base64.b64encode(b"\x89PNG").decode() in html
    assert 'alt="&quot;quoted&quot;"' in html
