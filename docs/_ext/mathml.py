"""Formulas as MathML, written when the site is built: no JavaScript and no network is needed.

Every browser of today draws MathML Core. The converter writes some things that Core leaves out, and
that would need a mathematical font which not every reader has; they are replaced here:

- ``mathvariant``: bold becomes a style, double-struck letters their own characters;
- the parentheses of a matrix, which have to grow with it, become a border of the table;
- relations that the converter takes for identifiers become operators, with their spaces.

A formula that cannot be converted is a warning, so the build fails on it.
"""

import re
from html import escape

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)

DOUBLE_STRUCK = {"R": "ℝ", "N": "ℕ", "Z": "ℤ", "C": "ℂ", "Q": "ℚ"}
FENCED = re.compile(
    r"<mo[^>]*>(?:\(|&#x00028;)</mo><mtable>(.*?)</mtable><mo[^>]*>(?:\)|&#x00029;)</mo>"
)
RELATION = re.compile(r"<mi>(&#x0(?:22|2A)[0-9A-F]{2};)</mi>")
STRUCK = re.compile(r'<mi mathvariant="double-struck">(\w)</mi>')


def to_mathml(latex: str, *, block: bool) -> str:
    """Convert one formula."""
    text = convert(latex.strip(), display="block" if block else "inline")
    text = text.replace(' mathvariant="bold"', ' style="font-weight: bold; font-style: normal"')
    text = STRUCK.sub(lambda m: f"<mi>{DOUBLE_STRUCK.get(m[1], m[1])}</mi>", text)
    text = FENCED.sub(r'<mtable class="fenced">\1</mtable>', text)
    return RELATION.sub(r"<mo>\1</mo>", text)


def _render(node, *, block: bool) -> str:
    latex = node.astext()
    try:
        return to_mathml(latex, block=block)
    except Exception as error:
        logger.warning("cannot convert the formula %r: %s", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"


def visit_inline(self, node):
    """Write a formula within a line."""
    self.body.append(_render(node, block=False))
    raise SkipNode


def visit_block(self, node):
    """Write a formula of its own; a wide one scrolls, so that the page does not."""
    self.body.append(f'<div class="formula" tabindex="0">{_render(node, block=True)}</div>\n')
    raise SkipNode


def setup(app):
    """Register the renderer; ``html_math_renderer = "mathml"`` selects it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
