"""Words that tables use: for missing cells, for yes and no, for scales, for identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["is_missing_text", "looks_like_a_date_name", "named_like_an_id", "scale_order", "shown"]

MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null", "none", "?", "#value!", "#ref!"}
)
# The usual spellings, so that most cells are told by one look-up.
MISSING_FORMS = frozenset(
    form for word in MISSING for form in (word, word.upper(), word.capitalize())
) | {"NaN", "-NaN", "NaT", "N/a"}

SCALES = tuple(
    tuple(words.split("<"))
    for words in (
        "very low<low<medium low<medium<moderate<medium high<high<very high<extreme",
        "lowest<low<average<high<highest",
        "low<mid<high",
        "low<middle<high",
        "low<normal<high<very high",
        "lower<middle<upper",
        "none<low<medium<high",
        "none<mild<moderate<severe<very severe",
        "negligible<minor<moderate<major<severe<critical",
        "xxs<xs<s<m<l<xl<xxl<xxxl",
        "tiny<small<medium<large<huge",
        "very small<small<medium<big<very big",
        "small<med<large",
        "small<med<big",
        "short<medium<long",
        "young<adult<old",
        "child<young adult<adult<senior",
        "very bad<bad<poor<fair<average<good<very good<excellent<outstanding",
        "very poor<poor<fair<good<very good<excellent",
        "unacc<acc<good<vgood",
        "very unhappy<unhappy<not too happy<neutral<pretty happy<happy<very happy",
        "strongly disagree<disagree<slightly disagree<neither agree nor disagree<neutral<undecided"
        "<slightly agree<agree<strongly agree",
        "very dissatisfied<dissatisfied<neutral<satisfied<very satisfied",
        "never<almost never<rarely<seldom<sometimes<occasionally<often<frequently<usually"
        "<almost always<always",
        "cold<cool<mild<warm<hot",
        "slow<medium<fast",
        "light<medium<heavy",
        "beginner<intermediate<advanced<expert",
        "bronze<silver<gold<platinum<diamond",
        "first<second<third<fourth<fifth",
        "1st<2nd<3rd<4th<5th<6th<7th<8th<9th<10th",
        "fair<good<very good<premium<ideal",
    )
)
SPACES = re.compile(r"[\s_\-]+")
RANGE = re.compile(
    r"(?:(<=?|under|below|less than|up to|[\[(])?\s*)(-?\d+(?:\.\d+)?)"
    r"(?:\s*(?:-|–|to|,|\.\.)\s*(-?\d+(?:\.\d+)?))?\s*"
    r"(?:(\+|and over|and more|or more|plus)|[\])])?",
    re.IGNORECASE,
)
ID_NAME = re.compile(
    r"^(id|ids|uid|uuid|guid|pk|key|index|idx|row|row ?(id|names?|num(ber)?|no)|record"
    r"( ?(id|no|num(ber)?))?|serial( ?(no|num(ber)?))?|unnamed: ?\d+|.*[ _\-.](id|uuid|guid|key)"
    r"|id[ _\-.].*)$",
    re.IGNORECASE,
)
CAMEL_ID = re.compile(r"^[a-z].*[a-z](Id|ID)$|^[A-Z][A-Za-z]*[a-z](Id|ID)$")


def is_missing_text(text: str) -> bool:
    """Whether a cell's text stands for no value."""
    return text in MISSING_FORMS or text.strip().lower() in MISSING


def shown(name: str, limit: int = 60) -> str:
    """Name of a column for messages: quoted, escaped, not endless."""
    return repr(name if len(name) <= limit else name[: limit - 3] + "...")


def named_like_an_id(name: str) -> bool:
    """Whether a column's name says that it numbers the rows."""
    return bool(ID_NAME.match(name.strip()) or CAMEL_ID.match(name.strip()))


def looks_like_a_date_name(name: str) -> bool:
    """Whether a column's name says that it holds days or times."""
    return bool(re.search(r"(^|[\W_])(date|day|dt)($|[\W_])|date$", name.strip(), re.IGNORECASE))


def scale_order(words: Sequence[str]) -> list[int] | None:
    """Places of `words` on a scale that they all belong to, such as low, medium, high.

    Parameters
    ----------
    words : list of str
        The different texts of a column.

    Returns
    -------
    list of int or None
        Ranks 0, 1, ...; None where they are on no known scale. Ranges (``10-20``, ``under 18``,
        ``65+``) are a scale too.
    """
    if len(words) < 3:
        return None  # two values need no order
    plain = [SPACES.sub(" ", word.strip().lower()) for word in words]
    for scale in SCALES:
        place = {word: rank for rank, word in enumerate(scale)}
        found = [place.get(word) for word in plain]
        if None not in found and len(set(found)) == len(found):
            order = sorted(range(len(words)), key=lambda i: found[i] or 0)
            return _ranks(order)
    ends = [_range_ends(word.strip().lower()) for word in words]
    if None in ends or len(set(ends)) != len(ends):
        return None
    return _ranks(sorted(range(len(words)), key=lambda i: ends[i] or (0.0, 0.0)))


def _range_ends(word: str) -> tuple[float, float] | None:
    match = RANGE.fullmatch(word)
    if match is None:
        return None
    low, end, high, open_end = match.groups()
    first = float(end)
    if low in ("<", "<=", "under", "below", "less than", "up to"):
        return (float("-inf"), first) if high is None and open_end is None else None
    if high is not None:
        return (first, float(high)) if open_end is None and float(high) >= first else None
    if open_end is not None:
        return first, float("inf")
    return (first, first) if low is None else None


def _ranks(order: list[int]) -> list[int]:
    ranks = [0] * len(order)
    for rank, i in enumerate(order):
        ranks[i] = rank
    return ranks
