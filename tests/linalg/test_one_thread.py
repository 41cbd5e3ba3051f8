"""Inner products and factors that do not depend on the threads of BLAS."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gdpa.linalg import one_thread as module
from gdpa.linalg.inner import BLAS_ALONE, PART, inner_product, length
from gdpa.linalg.one_thread import one_thread


@pytest.fixture
def all_libraries():
    """Look the libraries up again: other tests may have loaded packages that bring their own."""
    module._blas.cache_clear()


def blas_threads() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.mark.parametrize(
    "n", [0, 1, 7, PART, BLAS_ALONE, BLAS_ALONE + 1, 5 * PART, 5 * PART + 1, 50_000]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inner_product_is_the_sum_of_products(n, dtype):
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n)).astype(dtype)
    products = x.astype(np.float64) * y
    error = PART * float(np.finfo(dtype).eps)
    assert abs(inner_product(x, y) - math.fsum(products)) <= error * float(np.abs(products).sum())
    exact = math.sqrt(math.fsum(np.square(x, dtype=np.float64)))
    assert length(x) == pytest.approx(exact, rel=error)


def test_inner_product_has_the_same_digits_for_any_number_of_threads():
    x, y = np.random.default_rng(0).standard_normal((2, 200_000))
    found = []
    for count in (1, 2):
        with threadpool_limits(count):
            found.append(inner_product(x, y))
    assert found[0] == found[1]


def test_the_limit_holds_inside_and_ends_outside(all_libraries):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_thread():
            assert blas_threads() == {1}
            with one_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_the_libraries_of_numpy_and_scipy_are_known_from_the_first_call():
    code = (
        "from gdpa.linalg.one_thread import _blas\n"
        "known = len(_blas().info())\n"
        "import numpy.linalg, scipy.linalg, threadpoolctl\n"
        "blas = [i for i in threadpoolctl.threadpool_info() if i['user_api'] == 'blas']\n"
        "assert known == len(blas) > 0, (known, blas)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_limit_ends_with_an_error(all_libraries):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), one_thread():
            raise ZeroDivisionError
        assert blas_threads() == before
