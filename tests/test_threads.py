"""Threads: how many, that their number shows nowhere, and that BLAS starts none of its own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

import gdpa
from gdpa import threads as module
from gdpa.threads import effective_jobs, in_threads, one_thread


@pytest.fixture
def all_libraries():
    """Look the libraries up again: other tests may have loaded packages that bring their own."""
    module._blas.cache_clear()
    module._blas()


def blas_threads() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


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
        "from gdpa.threads import _blas\n"
        "known = len(_blas().info())\n"
        "import numpy.linalg, scipy.linalg, threadpoolctl\n"
        "blas = [i for i in threadpoolctl.threadpool_info() if i['user_api'] == 'blas']\n"
        "assert known == len(blas) > 0, (known, blas)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 6_000])
def test_members_are_judged_with_one_thread_of_blas(all_libraries, n):
    """On a busy machine threads of BLAS made a fit take ten times as long."""
    seen = set()

    class Watcher(LogisticRegression):
        def fit(self, X, y):
            seen.update(blas_threads())
            return super().fit(X, y)

    X = np.random.default_rng(0).normal(size=(n, 3))
    y = np.where(np.arange(n) < 60, X[:, 0] > 0, -1)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        gdpa.CommitteeClassifier(models=Watcher()).fit(X, y)
        assert blas_threads() == before
    assert 1 in seen
    assert n > 5_000 or seen == {1}


def test_the_limit_ends_with_an_error(all_libraries):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), one_thread():
            raise ZeroDivisionError
        assert blas_threads() == before


def test_n_jobs_is_read_in_one_way(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [effective_jobs(n) for n in (None, 1, 3, -1, -2, -50)] == [8, 1, 3, 12, 11, 1]
    for value, expected in (("3", 3), ("64", 12), ("2,1", 2), ("0", 8), ("many", 8), ("", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert effective_jobs(None) == expected
        assert effective_jobs(-1) == 12
    for bad in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_jobs must be a non-zero integer or None"):
            effective_jobs(bad)


def test_a_browser_has_one_thread(monkeypatch):
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert [effective_jobs(n) for n in (None, 1, 8, -1)] == [1, 1, 1, 1]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_results_come_in_the_order_of_the_work(n_jobs):
    assert in_threads(lambda i: i * i, range(50), n_jobs) == [i * i for i in range(50)]
    assert in_threads(lambda i: i, [], n_jobs) == []


def test_after_an_error_nothing_further_is_begun():
    begun, wait = [], threading.Event()

    def work(i):
        if i == 0:
            raise ZeroDivisionError
        wait.wait(10)
        begun.append(i)

    timer = threading.Timer(0.2, wait.set)
    timer.start()
    with pytest.raises(ZeroDivisionError):
        in_threads(work, range(1000), 2)
    timer.join()
    assert len(begun) < 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own():
    code = (
        "import os\n"
        "from gdpa.threads import in_threads\n"
        "in_threads(abs, range(9), 2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if in_threads(abs, range(-9, 0), 2)[0] == 9 else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_an_interrupt_waits_for_the_pieces_that_run():
    begun, ended = [], []

    def work(i):
        begun.append(i)
        if i == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.3)
        ended.append(i)

    # A process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_threads(work, range(100), 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 100


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_an_interrupt_at_any_moment_is_an_interrupt():
    """Waiting for futures, one in some hundreds broke a lock: another error, or a hang."""
    if sys.gettrace() is not None:
        pytest.skip("the coverage tool has such a lock itself, and hangs")
    rng = random.Random(0)

    def until_interrupted():
        # Python ignores an exception that is raised in a destructor, and so loses an interrupt that
        # arrives there: another one follows after five seconds.
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 4e-4), 5.0)
        while True:
            in_threads(lambda i: i, range(8), 4)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(1000):
            with pytest.raises(KeyboardInterrupt):
                until_interrupted()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert in_threads(lambda i: i, range(8), 4) == list(range(8))
    assert not module._LIMIT.blocks


def test_concurrent_limits_end_with_the_last_of_them(all_libraries):
    """Restored in the order in which they began, each would restore what the other had set."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
