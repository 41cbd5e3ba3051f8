"""Formulas as MathML, written when the site is built: no JavaScript and no network is needed.

Every browser of today draws MathML. A formula that cannot be converted is a warning, so the build
fails on it.
"""

from html import escape

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)


def to_mathml(latex: str, *, block: bool) -> str:
    return convert(latex.strip(), display="block" if block else "inline")


def _render(node, *, block: bool) -> str:
    latex = node.astext()
    try:
        return to_mathml(latex, block=block)
    except Exception as error:
        logger.warning("cannot convert the formula %r: %s", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"


def visit_inline(self, node):
    self.body.append(f'<span class="math">{_render(node, block=False)}</span>')
    raise SkipNode


def visit_block(self, node):
    # Wide formulas scroll on their own, so that the page does not.
    self.body.append(f'<div class="math" tabindex="0">{_render(node, block=True)}</div>\n')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
