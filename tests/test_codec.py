"""The codec: what is stored comes back equal; anything else that is read is a ValueError."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gdpa import codec
from gdpa.codec import check_numbers, load, pack, save, storable, unpack

KIND = {"kind": "test", "version": 3}


@runtime_checkable
class HasSize(Protocol):
    @property
    def size(self) -> int: ...


@storable("test-leaf")
@dataclass(frozen=True)
class Leaf:
    values: NDArray[np.float64]
    weight: float
    note: str | None = None
    cache: int = field(default=0, metadata={"stored": False})

    def __post_init__(self) -> None:
        check_numbers("values", self.values, (None,), at_least=-10, at_most=10)

    @property
    def size(self) -> int:
        return self.values.size


@storable("test-matrix")
@dataclass(frozen=True)
class Matrix:
    A: NDArray[Any] | sp.csr_array
    mode: Literal["fast", "exact"]


@storable("test-tree")
@dataclass(frozen=True)
class Tree:
    count: int
    flag: bool
    pair: tuple[int, float]
    leaves: tuple[HasSize, ...]
    child: Tree | Matrix | None
    extra: dict[str, Any]
    names: NDArray[Any]


def same(a: Any, b: Any) -> bool:
    """Equal in type and content, arrays and sparse matrices included."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b and isinstance(a, bool) == isinstance(b, bool)
    if type(a) is not type(b):
        return False
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, sp.csr_array):
        return a.shape == b.shape and all(
            np.array_equal(getattr(a, p), getattr(b, p)) for p in ("data", "indices", "indptr")
        )
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(a == b)


words = st.text("abc$é\n\0", max_size=4)
numbers = st.floats(allow_nan=False) | st.integers(-(2**63) + 1, 2**63 - 1)
plain = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text("abcé", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
floats = st.lists(st.floats(-10, 10), max_size=4).map(lambda v: np.array(v, dtype=float))
leaves = st.builds(Leaf, floats, st.floats(allow_nan=False), st.none() | words)


@st.composite
def matrices(draw: Any) -> Matrix:
    dense = draw(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), max_size=3))
    A = np.array(dense, dtype=float).reshape(-1, 3)
    return Matrix(sp.csr_array(A) if draw(st.booleans()) else A, draw(st.sampled_from(["fast"])))


names = st.one_of(
    st.lists(st.text("abc", max_size=3), max_size=3).map(lambda v: np.array(v, dtype=object)),
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1).map(np.array),
    st.lists(st.integers(0, 9), max_size=3).map(lambda v: np.array(v, dtype=np.int32)),
)
trees = st.recursive(
    matrices() | st.none(),
    lambda child: st.builds(
        Tree,
        st.integers(-5, 5),
        st.booleans(),
        st.tuples(st.integers(0, 3), st.floats(allow_nan=False)),
        st.lists(leaves, max_size=2).map(tuple),
        child,
        st.dictionaries(st.text("abc", max_size=3), plain, max_size=2),
        names,
    ),
    max_leaves=3,
).filter(lambda value: value is not None)

EXAMPLE = Tree(
    3,
    True,
    (1, math.inf),
    (Leaf(np.array([1.0, 2.0]), 0.5, "n"),),
    Tree(1, False, (0, -math.inf), (), Matrix(sp.csr_array(np.eye(3)), "exact"), {}, np.arange(2)),
    {"seed": 1, "list": [None, {"a": (1, "b")}]},
    np.array(["x", "yy"], dtype=object),
)


POINTERS = np.array([0, 100, -100, 3], dtype=np.int8)


@given(trees)
def test_round_trip(tree):
    arrays, described = pack(tree)
    described = json.loads(json.dumps(described, allow_nan=False))
    assert all(a.dtype.kind != "O" for a in arrays.values())
    assert same(unpack(type(tree), arrays, described), tree)


def test_file_round_trip(tmp_path):
    path = save(tmp_path / "a.npz", EXAMPLE, **KIND)
    assert same(load(path, Tree, **KIND), EXAMPLE)


def test_what_was_shared_is_stored_once_and_shared_again():
    leaf = Leaf(np.arange(3.0), 1.0)
    twin = Leaf(leaf.values, 2.0)
    tree = Tree(1, True, (1, 1.0), (leaf, leaf, twin), None, {}, np.arange(1))
    arrays, described = pack(tree)
    assert len(arrays) == 2
    found = unpack(Tree, arrays, described)
    assert found.leaves[0] is found.leaves[1]
    assert found.leaves[0].values is found.leaves[2].values


def test_a_field_that_is_not_stored_takes_its_default():
    arrays, described = pack(Leaf(np.zeros(1), 1.0, cache=7))
    assert unpack(Leaf, arrays, described).cache == 0


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every value within plain data is."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, v in inner:
            found += paths(v, (*path, key))
    return found


junk = st.sampled_from(
    [None, True, -1, 0, 2**70, 1e308, math.nan, math.inf, "", "inf", "test-leaf", [], {}, [[]],
     {"$float": "nan"}, {"$array": "0"}, {"$object": 0}, {"$object": 10**9}, {"$object": True},
     {"$tuple": 3}, {"$csr": [1, 2, 3, 2, 2]}, {"$csr": [{}, {}, {}, 1, 1]},
     {"$unknown": 1}, {"$array": "x", "$tuple": []}, {"$strings": "0"}, object()]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=400)
@given(st.data())
def test_mutated_plain_data_are_refused_or_give_an_object_of_the_class(data):
    arrays, described = pack(data.draw(st.just(EXAMPLE) | trees, label="tree"))
    described, arrays = copy.deepcopy(described), dict(arrays)
    path = data.draw(st.sampled_from(paths(described)), label="path")
    target = described
    for key in path[:-1]:
        target = target[key]
    act = data.draw(st.sampled_from(["replace", "delete", "copy", "swap", "array"]), label="act")
    if act == "replace":
        target[path[-1]] = data.draw(junk)
    elif act == "delete":
        del target[path[-1]]
    elif act == "copy" and isinstance(target, list):
        target.append(copy.deepcopy(target[path[-1]]))
    elif act == "copy":
        target["more"] = target[path[-1]]
    elif act == "swap":
        other = data.draw(st.sampled_from(paths(described)))
        value: Any = described
        for key in other:
            value = value[key]
        target[path[-1]] = copy.deepcopy(value)
    elif arrays:
        name = data.draw(st.sampled_from(sorted(arrays)))
        shapes = [np.full(3, np.nan), np.array(7), np.zeros((2, 2)), np.array(["t"]), np.arange(4)]
        arrays[name] = data.draw(
            st.sampled_from([*shapes, np.array([{}], dtype=object), -shapes[4]])
        )
    try:
        found = unpack(object, arrays, described)
    except ValueError:
        return  # any other error fails the test
    assert isinstance(found, Tree | Matrix | Leaf)


@pytest.mark.slow
def test_every_byte_that_is_flipped_is_refused_or_harmless(tmp_path):
    path = save(tmp_path / "a.npz", EXAMPLE, **KIND)
    whole = path.read_bytes()
    refused = 0
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= 1 << i % 8
        path.write_bytes(damaged)
        try:
            found = load(path, Tree, **KIND)
        except ValueError:
            refused += 1
        else:
            assert same(found, EXAMPLE)
    assert refused > len(whole) / 2


def test_an_attacker_who_computes_the_checksum_is_refused_by_the_types(tmp_path):
    path = save(tmp_path / "a.npz", EXAMPLE, **KIND)
    content = codec.read_npz(path)
    text = str(content["json"]).replace('"exact"', '"other"')
    del content["checksum"]
    content["json"] = np.array(text)
    codec.write_npz(path, content | {"checksum": np.array(codec._checksum(content))})
    with pytest.raises(ValueError, match=r"a\.npz.*test-matrix\.mode must be Literal"):
        load(path, Tree, **KIND)


def test_other_formats_versions_classes_and_missing_files(tmp_path):
    path = save(tmp_path / "a.npz", EXAMPLE, **KIND)
    with pytest.raises(ValueError, match="version 3, but this version of gdpa reads 4"):
        load(path, Tree, kind="test", version=4)
    with pytest.raises(ValueError, match="not a saved other"):
        load(path, Tree, kind="other", version=3)
    with pytest.raises(ValueError, match="expected Leaf, got Tree"):
        load(path, Leaf, **KIND)
    with pytest.raises(FileNotFoundError, match="no file"):
        load(tmp_path / "none.npz", Tree, **KIND)
    deep = np.array("[" * 100_000)
    codec.write_npz(path, {"json": deep, "checksum": np.array("")})
    with pytest.raises(ValueError, match="damaged"):
        load(path, Tree, **KIND)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o, a: o[0][1].pop("weight"), "test-leaf lacks field 'weight'"),
        (lambda o, a: o[0][1].update(more=1), "test-leaf has an unknown field 'more'"),
        (lambda o, a: o[0].__setitem__(0, "os.system"), "'os.system' is not a storable class"),
        (lambda o, a: o[0][1].update(weight="1"), "test-leaf.weight must be float, got str '1'"),
        (lambda o, a: o[0][1].update(weight=10**30), "out of range"),
        (lambda o, a: o[-1][1].update(flag=1), "test-tree.flag must be bool, got int 1"),
        (lambda o, a: a.update(more=np.zeros(1)), "'more' is not used"),
        (lambda o, a: o.insert(-1, o[0]), "object 3 is not used"),
        (lambda o, a: a.update({"0.test-leaf.values": np.array([99.0])}), "must lie between"),
        (lambda o, a: a.update({"0.test-leaf.values": np.array([np.nan])}), "finite numbers"),
        (lambda o, a: a.update({"0.test-leaf.values": np.array(["t"])}), "must be .*an array of"),
        (lambda o, a: a.update({"1.test-matrix.A": np.full(3, np.nan)}), "not finite"),
        (lambda o, a: a.update({"2.test-matrix.A": np.array([0, 1, 9])}), "are inconsistent"),
        (lambda o, a: a.update({"3.test-matrix.A": np.array([0, 2, 1, 3])}), "are inconsistent"),
        (lambda o, a: o[1][1]["A"]["$csr"].__setitem__(4, 2**40), "are inconsistent"),
        # The differences of these pointers overflow to positive numbers.
        (lambda o, a: a.update({"3.test-matrix.A": POINTERS}), "are inconsistent"),
        (lambda o, a: o[-1][1].update(extra={"a": {"$object": 0}}), "must be dict"),
        (lambda o, a: o[1][1].update(mode={"$object": 0}), "test-matrix.mode must be"),
    ],
)
def test_refusals_say_what_is_wrong(change, message):
    arrays, described = pack(EXAMPLE)
    change(described["objects"], arrays)
    with pytest.raises(ValueError, match=message):
        unpack(Tree, arrays, described)


def test_depth_and_number_of_objects_are_limited():
    arrays, described = pack(EXAMPLE)
    nested: Any = 1
    for _ in range(codec.MAX_DEPTH + 1):
        nested = [nested]
    described["objects"][-1][1]["extra"] = {"a": nested}
    with pytest.raises(ValueError, match="deeper"):
        unpack(Tree, arrays, described)
    with pytest.raises(ValueError, match="list of 1 to"):
        unpack(Tree, arrays, {"objects": described["objects"] * codec.MAX_OBJECTS})
    with pytest.raises(ValueError, match="deeper"):
        pack(Tree(1, True, (1, 1.0), (), None, {"a": nested}, np.arange(1)))


@pytest.mark.parametrize(
    "extra",
    [{"a": object()}, {"a": math.nan}, {"a": 2**70}, {"$a": 1}, {1: 2}, {"a": {1, 2}}, {"a": len}],
)
def test_what_only_pickle_could_store_is_refused(extra):
    with pytest.raises(ValueError, match=r"test-tree\.extra"):
        pack(Tree(1, True, (1, 1.0), (), None, extra, np.arange(1)))


def test_objects_in_arrays_are_refused_unless_they_are_text():
    for array in (np.array([1, "a"], dtype=object), np.array(["a\0"], dtype=object)):
        with pytest.raises(ValueError, match=r"test-tree\.names"):
            pack(Tree(1, True, (1, 1.0), (), None, {}, array))
    with pytest.raises(ValueError, match="int cannot be stored"):
        pack(3)


def test_save_refuses_what_load_would_refuse(tmp_path):
    with pytest.raises(ValueError, match=r"test-tree\.count must be int, got float"):
        save(tmp_path / "a.npz", Tree(1.5, True, (1, 1.0), (), None, {}, np.arange(1)), **KIND)
    assert not list(tmp_path.iterdir())


def test_only_dataclasses_are_registered_and_each_name_once():
    with pytest.raises(TypeError, match="not a dataclass"):
        storable("test-other")(int)
    with pytest.raises(TypeError, match="taken"):
        storable("test-leaf")(Matrix)


def nested_list(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def tree(**fields_: Any) -> Tree:
    basic = {"count": 1, "flag": True, "pair": (1, 1.0), "leaves": (), "child": None, "extra": {}}
    return Tree(**({**basic, "names": np.arange(1)} | fields_))


def test_the_deepest_value_that_is_stored():
    """A field of an object is one deeper than the object, and an item than its container."""
    deepest = codec.MAX_DEPTH - 2
    value = tree(extra={"a": nested_list(deepest)})
    assert same(unpack(Tree, *pack(value)), value)
    with pytest.raises(ValueError, match="deeper"):
        pack(tree(extra={"a": nested_list(deepest + 1)}))
    arrays, described = pack(tree())
    described["objects"][-1][1]["extra"] = {"a": nested_list(codec.MAX_DEPTH - 1)}
    assert isinstance(unpack(Tree, arrays, described), Tree)
    described["objects"][-1][1]["extra"] = {"a": nested_list(codec.MAX_DEPTH)}
    with pytest.raises(ValueError, match="deeper"):
        unpack(Tree, arrays, described)
    chain = tree()
    for _ in range(codec.MAX_DEPTH - 2):
        chain = tree(child=chain)
    assert same(unpack(Tree, *pack(chain)), chain)
    with pytest.raises(ValueError, match="deeper"):
        pack(tree(child=chain))


def test_the_largest_number_of_objects(monkeypatch):
    arrays, described = pack(EXAMPLE)
    count = len(described["objects"])
    monkeypatch.setattr(codec, "MAX_OBJECTS", count)
    assert same(unpack(Tree, arrays, described), EXAMPLE)
    monkeypatch.setattr(codec, "MAX_OBJECTS", count - 1)
    for bad in (described, {"objects": []}, {}, [], {**described, "more": 1}):
        with pytest.raises(ValueError, match=f"list of 1 to {count - 1} objects"):
            unpack(Tree, arrays, bad)


def test_duplicate_and_unsorted_entries_are_stored_in_order_and_added():
    parts = np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    A = sp.csr_array(parts, shape=(2, 3))
    found = unpack(Matrix, *pack(Matrix(A, "fast"))).A
    np.testing.assert_array_equal(found.toarray(), [[2.0, 0.0, 5.0], [0.0, 8.0, 0.0]])
    assert found.nnz == 3
    assert A.nnz == 4  # the original is left alone
    B = sp.csr_array(np.eye(3))
    assert any(array is B.data for array in pack(Matrix(B, "fast"))[0].values())


@storable("test-checked")
@dataclass(frozen=True)
class Checked:
    values: NDArray[np.float64]

    def check_stored(self) -> None:
        if self.values.sum() < 0:
            raise KeyError("negative")


def test_conditions_of_files_are_checked_on_reading():
    arrays, described = pack(Checked(np.ones(2)))
    assert list(arrays) == ["0.test-checked.values"]
    assert described == {"objects": [["test-checked", {"values": {"$array": next(iter(arrays))}}]]}
    with pytest.raises(ValueError, match=r"test-checked.*negative"):
        unpack(Checked, {name: -array for name, array in arrays.items()}, described)
    with pytest.raises(ValueError, match="negative"):
        pack(Checked(-np.ones(2)))


def test_the_checksum_covers_names_types_shapes_and_content():
    zeros = np.zeros(4, dtype=np.int32)
    contents = [
        {"a": zeros}, {"b": zeros}, {"a": zeros.astype(np.float32)}, {"a": zeros.reshape(2, 2)},
        {"a": np.arange(4, dtype=np.int32)}, {"a": zeros, "b": zeros}, {"a": zeros[:2]},
        {"a": zeros[:0]}, {}, {"a": zeros.astype(">i4")},
    ]  # fmt: skip
    sums = [codec._checksum(content) for content in contents]
    assert len(set(sums)) == len(sums)
    assert all(len(found) == 64 for found in sums)
    two = {"a": zeros, "b": zeros + 1}
    assert codec._checksum(two) == codec._checksum(dict(reversed(two.items())))


def test_damage_that_the_archive_does_not_notice_is_refused(tmp_path):
    path = save(tmp_path / "a.npz", EXAMPLE, **KIND)
    assert path == tmp_path / "a.npz"
    content = codec.read_npz(path)
    name = next(name for name in content if name.endswith("values"))
    for changed in (content[name] + 1, content[name].astype(np.float32), content[name][::-1]):
        codec.write_npz(path, content | {name: changed})
        with pytest.raises(ValueError, match="checksum does not match"):
            load(path, Tree, **KIND)
    codec.write_npz(path, content)
    assert same(load(path, Tree, **KIND), EXAMPLE)


def test_a_version_is_a_number_and_a_file_has_a_format(tmp_path):
    path = save(tmp_path / "a.npz", EXAMPLE, kind="test", version=True)
    with pytest.raises(ValueError, match="version True, but"):
        load(path, Tree, kind="test", version=1)
    content = codec.read_npz(path)
    for text in ("[]", "{}", '"format"', '{"version": 3}'):
        codec.write_npz(path, content | {"json": np.array(text)})
        with pytest.raises(ValueError, match="is not a saved test"):
            load(path, Tree, **KIND)
    for missing in ("json", "checksum"):
        codec.write_npz(path, {name: array for name, array in content.items() if name != missing})
        with pytest.raises(ValueError, match="damaged or not a saved test"):
            load(path, Tree, **KIND)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (2**63 - 1, 2**63 - 1), (1 - 2**63, 1 - 2**63), (2**63, None), (-(2**63), None),
        (1e308, 1e308), (math.inf, None), (-math.inf, None), (math.nan, None),
        ({"$float": "inf"}, math.inf), ({"$float": "-inf"}, -math.inf), ({"$float": "nan"}, None),
        ({"$float": "1"}, None), ({"$tuple": [1, [2]]}, (1, [2])), ({"$tuple": {}}, None),
        ({"a": {"b": None}}, {"a": {"b": None}}), ({"a": 1, "$b": 2}, None), ({"$b": 2}, None),
        ({"": 1}, {"": 1}), ({"$tuple": [], "$float": "inf"}, None), ("$x", "$x"), (True, True),
    ],
)  # fmt: skip
def test_plain_values_as_they_are_stored(stored, expected):
    arrays, described = pack(tree())
    described["objects"][0][1]["extra"] = {"x": stored}
    if expected is None:
        with pytest.raises(ValueError, match=r"test-tree\.extra: .* out of range or not finite"):
            unpack(Tree, arrays, described)
    else:
        assert same(unpack(Tree, arrays, described).extra["x"], expected)


@pytest.mark.parametrize("number", [-1, 1, 2, 10**9])
def test_an_object_refers_to_earlier_ones_only(number):
    arrays, described = pack(tree(child=Matrix(np.eye(2), "fast")))
    described["objects"][1][1]["child"] = {"$object": number}
    with pytest.raises(ValueError, match=r"test-tree\.child"):
        unpack(Tree, arrays, described)
    described["objects"][1][1]["child"] = {"$object": 0}
    assert unpack(Tree, arrays, described).child.mode == "fast"


def test_numpy_scalars_dates_and_text_come_back():
    extra = {"f": np.float32(0.5), "i": np.int16(3), "b": np.bool_(True), "inf": np.float64(np.inf)}
    value = tree(extra=extra, names=np.array(["2020-01-02"], dtype="M8[D]"))
    arrays, described = pack(value)
    found = unpack(Tree, arrays, json.loads(json.dumps(described, allow_nan=False)))
    assert same(found.extra, {"f": 0.5, "i": 3, "b": True, "inf": math.inf})
    assert same(found.names, value.names)
    text = tree(names=np.array(["a", "bcd", ""], dtype=object))
    arrays, described = pack(text)
    assert described["objects"][0][1]["names"] == {"$strings": "0.test-tree.names"}
    assert same(unpack(Tree, arrays, described).names, text.names)
    records = np.zeros(2, dtype=[("a", float)])
    with pytest.raises(ValueError, match=r"test-tree\.names: .*without pickle"):
        pack(tree(names=records))
    for kind in (records, np.array([1, None], dtype=object)):
        with pytest.raises(ValueError, match="Python objects or records"):
            unpack(Tree, arrays | {"0.test-tree.names": kind}, described)


GOOD = (
    np.ones(3), np.array([0, 1, 2], dtype=np.int32), np.array([0, 1, 3], dtype=np.int32), 2, 3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("place", "part"),
    [
        (0, np.ones(2)), (0, np.ones((3, 1))), (0, np.ones(3, dtype=complex)), (0, [1.0, 1.0, 1.0]),
        (0, np.array(["a", "b", "c"])), (1, np.array([0, 1, 3])), (1, np.array([-1, 1, 2])),
        (1, np.array([0.0, 1.0, 2.0])), (1, np.array([0, 1])), (1, np.ones(3, dtype=np.uint8)),
        (2, np.array([0, 1])), (2, np.array([0, 1, 2])), (2, np.array([1, 1, 3])),
        (2, np.array([0, 4, 3])), (2, np.array([0, 1, 3, 3])), (2, np.array([0.0, 1.0, 3.0])),
        (3, 3), (3, 1), (3, -1), (3, True), (3, 2.0), (4, 2), (4, 2**31), (4, -1), (4, "3"),
    ],
)  # fmt: skip
def test_each_part_of_a_sparse_matrix_is_checked(place, part):
    parts: list[Any] = list(GOOD)
    parts[place] = part
    with pytest.raises(ValueError, match=r"^own: the parts .* inconsistent"):
        codec.csr_of_untrusted_parts("own", parts)
    with pytest.raises(ValueError, match="inconsistent"):
        codec.csr_of_untrusted_parts("own", GOOD[:4])


def test_sparse_matrices_at_the_limits():
    found = codec.csr_of_untrusted_parts("own", GOOD)
    np.testing.assert_array_equal(found.toarray(), [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    empty = np.zeros(0, dtype=np.int64)
    for rows, columns in ((0, 0), (0, 2**31 - 1), (2, 0)):
        pointers = np.zeros(rows + 1, dtype=np.int64)
        found = codec.csr_of_untrusted_parts("own", (np.zeros(0), empty, pointers, rows, columns))
        assert found.shape == (rows, columns)
    for data in (np.ones(3, dtype=bool), np.ones(3, dtype=np.uint8), np.ones(3, dtype=np.int8)):
        assert codec.csr_of_untrusted_parts("own", (data, *GOOD[1:])).sum() == 3


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (float, [1.5, 2], [True, "1", None]),
        (int, [2], [True, 2.0]),
        (bool, [True], [1, 0.0]),
        (str | None, ["a", None], [1, ["a"]]),
        (Literal["a", 1], ["a", 1], [True, "b", 1.0]),
        (tuple[int, float], [(1, 2.0)], [(1,), (1, 2.0, 3), [1, 2.0], (1.5, 2.0)]),
        (tuple[int, ...], [(), (1,), (1, 2)], [(1, "a"), [1]]),
        (list[int], [[], [1, 2]], [[1, None], (1,)]),
        (dict[str, int], [{}, {"a": 1}], [{"a": 1.5}, []]),
        (Any, [None, 1, [1, {"a": (True,)}]], [np.zeros(1), [np.zeros(1)], {"a": np.zeros(1)}]),
        (NDArray[np.float64], [np.zeros(1)], [np.zeros(1, int), np.zeros(1, bool), [0.0]]),
        (NDArray[np.intp], [np.zeros(1, int), np.zeros(1, np.uint8)], [np.zeros(1)]),
        (NDArray[np.bool_], [np.zeros(1, bool)], [np.zeros(1), np.zeros(1, int)]),
        (NDArray[Any] | sp.csr_array, [np.array(["a"]), sp.csr_array(np.eye(2))], [1, None]),
        (HasSize, [Leaf(np.zeros(1), 1.0)], [np.zeros(1), 1]),
        (Leaf, [Leaf(np.zeros(1), 1.0)], [Matrix(np.eye(1), "fast"), 1]),
    ],
)  # fmt: skip
def test_which_values_match_an_annotation(hint, good, bad):
    assert [codec._matches(value, hint) for value in good] == [True] * len(good)
    assert [codec._matches(value, hint) for value in bad] == [False] * len(bad)


def test_arrays_of_numbers_are_checked():
    good = {"shape": (2, None), "at_least": 0, "at_most": 3}
    for array in (np.array([[0.0, 3.0], [1.0, 2.0]]), np.zeros((2, 0)), np.ones((2, 1), bool)):
        check_numbers("own", array, **good)
    for array in (np.zeros(2), np.zeros((3, 1)), np.full((2, 1), np.inf), np.full((2, 1), 1j)):
        with pytest.raises(ValueError, match=r"finite numbers of shape \(2, any\), got"):
            check_numbers("own", array, **good)
    for low, high in ((-0.5, 2), (0, 3.5)):
        message = f"own must lie between 0 and 3, got {low:g} to {high:g}"
        with pytest.raises(ValueError, match=message):
            check_numbers("own", np.array([[low], [high]]), **good)


def test_a_class_may_be_registered_again_by_itself():
    """A module that is imported again replaces its class, but a name has one owner."""
    again = dataclass(frozen=True)(type("Checked", (), {"__annotations__": {"values": int}}))
    again.__qualname__ = Checked.__qualname__
    try:
        assert storable("test-checked")(again) is again
        with pytest.raises(ValueError, match="cannot be stored"):
            pack(Checked(np.ones(2)))  # of the class that was replaced
    finally:
        storable("test-checked")(Checked)
    assert pack(Checked(np.ones(2)))[1]["objects"][0][0] == "test-checked"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (["test-leaf"], "'test-leaf' is not a storable class with its fields"),
        (["test-leaf", []], "'test-leaf' is not a storable class with its fields"),
        (["test-leaf", {}, 1], "'test-leaf' is not a storable class with its fields"),
        ([3, {}], "3 is not a storable class"),
        ([], "an object must have a name and fields"),
        (7, "an object must have a name and fields"),
    ],
)
def test_an_object_has_a_name_and_fields(entry, message):
    with pytest.raises(ValueError, match=message):
        unpack(Leaf, {}, {"objects": [entry]})
