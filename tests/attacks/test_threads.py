"""Refused threads do not end the process, little work starts no thread, and limits are respected."""

import os
import subprocess
import sys
import textwrap
import threading

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from polyseme import LDA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, TensorPLSA, _kernels
from polyseme.kernels import map_in_threads, single_threaded_blas
from polyseme.text import Vectorizer, _counting
from polyseme.utils import effective_threads

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
SMALL = RNG.poisson(1.0, (50, 30))
LARGE = sp.random_array((400, 300), density=0.3, rng=RNG, data_sampler=lambda size: RNG.integers(1, 5, size)).tocsr()


def python(code: str, **environment: str) -> str:
    """Return the output of a new process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, timeout=120, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.strip()


# threads that cannot be created


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_without_address_space_for_stacks_the_work_is_done_by_fewer_threads():
    """The stack of each thread takes 1 GiB here, and only a few fit in the address space."""
    found = python(
        """
        import resource, threading
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        import os, sys
        if not os.environ.get("AGAIN"):  # glibc reads the size of stacks when a process starts
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {"AGAIN": "1"})
        import joblib, numpy as np, scipy.sparse as sp
        from polyseme import PLSA, _kernels
        from polyseme.text import Vectorizer, _counting
        joblib.cpu_count = lambda: 16  # so that n_jobs=64 is 64 threads
        rng = np.random.default_rng(0)
        X = sp.csr_array(rng.poisson(0.5, (2000, 600)).astype(np.float32))
        texts = [" ".join(map(str, rng.integers(0, 2000, 400))) for _ in range(1500)]
        fit = lambda n_jobs: PLSA(30, random_state=0, max_iter=3, n_jobs=n_jobs).fit(X).components_
        count = lambda n_jobs: Vectorizer(n_jobs=n_jobs).fit_transform(texts)
        alone, counted = fit(1), count(1)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (5 << 30), resource.RLIM_INFINITY))
        before = _kernels.threads_started(), _counting.threads_started()
        assert np.array_equal(fit(64), alone)
        assert (count(64) != counted).nnz == 0
        print(_kernels.threads_started() > before[0], _counting.threads_started() > before[1])
        try:
            many = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(64)]
            for thread in many:
                thread.start()
        except RuntimeError:
            print("refused")
        """,
        OPENBLAS_NUM_THREADS="1",
    )
    assert found == "True True\nrefused", found


def test_parallel_work_is_done_in_one_thread_if_no_other_can_be_started(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert list(map_in_threads(lambda item: item**2, list(range(20)), 8)) == [item**2 for item in range(20)]


def test_an_error_of_parallel_work_is_raised_and_ends_the_threads():
    before = threading.active_count()
    for n_threads in (1, 4):
        with pytest.raises(ZeroDivisionError):
            list(map_in_threads(lambda item: 1 // (item - 7), list(range(20)), n_threads))
    unfinished = map_in_threads(lambda item: item, list(range(20)), 4)
    assert next(unfinished) == 0
    unfinished.close()
    assert threading.active_count() == before


def test_parallel_work_starts_only_a_few_items_early():
    started = []

    def begin(item):
        started.append(item)
        return item

    for number, item in enumerate(map_in_threads(begin, list(range(100)), 3)):
        assert item == number
        assert len(started) <= number + 3


@pytest.mark.parametrize("n_jobs", [100000, 2**31 - 1, 2**31, 10**30])
def test_any_number_of_jobs_is_safe(n_jobs):
    assert effective_threads(n_jobs) == 4 * joblib.cpu_count()
    texts = ["ship and sea", "sea and storm"]
    expected = Vectorizer(n_jobs=1).fit_transform(texts)
    assert (Vectorizer(n_jobs=n_jobs).fit_transform(texts) != expected).nnz == 0
    found = PLSA(3, random_state=0, max_iter=3, n_jobs=n_jobs).fit(LARGE)
    assert np.array_equal(found.components_, PLSA(3, random_state=0, max_iter=3, n_jobs=1).fit(LARGE).components_)


# no thread for little work


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr("polyseme.utils.usable_cores", lambda: 4)
    monkeypatch.setattr("polyseme.utils.openmp_threads", lambda: 4)


@pytest.mark.parametrize(
    "estimator",
    [
        PLSA(3, random_state=0),
        PLSA(3, random_state=0, solver="scd"),
        LDA(3, random_state=0),
        NMF(3, random_state=0),
        HierarchicalPLSA(random_state=0, max_iter=20),
        CorrelatedTopicModel(3, random_state=0, max_iter=20),
        TensorPLSA(3, random_state=0, max_iter=20),
    ],
    ids=lambda estimator: f"{type(estimator).__name__} {getattr(estimator, 'solver', '')}",
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_small_fit_starts_no_thread(estimator, make, four_cores, monkeypatch):
    assert effective_threads(None) == 4
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail("a Python thread was started"))
    before = _kernels.threads_started()
    estimator.fit(make(SMALL))
    estimator.transform(make(SMALL))
    assert _kernels.threads_started() == before


def test_a_large_fit_starts_threads(four_cores):
    before = _kernels.threads_started()
    PLSA(20, random_state=0, max_iter=3).fit(LARGE)
    assert _kernels.threads_started() > before


@pytest.mark.parametrize("settings", [{}, {"phrases": True}, {"ngram_range": (1, 2)}, {"tokenizer": str.split}])
def test_few_texts_start_no_thread(settings, four_cores):
    texts = [f"ship {number % 5} sails the sea {number % 7} today" for number in range(200)]
    before = _counting.threads_started()
    Vectorizer(token_pattern=None if "tokenizer" in settings else r"\w+", **settings).fit_transform(texts)
    assert _counting.threads_started() == before


# limits


def test_limits_of_threadpoolctl_are_respected():
    cores = effective_threads(None)
    with threadpool_limits(limits=1):
        assert effective_threads(None) == effective_threads(-1) == 1
        assert effective_threads(2) == 2
    assert effective_threads(None) == cores


def test_omp_num_threads_is_respected():
    code = "from polyseme.utils import effective_threads; print(effective_threads(None))"
    assert python(code, OMP_NUM_THREADS="1") == "1"


def test_limits_of_joblib_are_respected():
    with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=1):
        assert joblib.Parallel()(joblib.delayed(effective_threads)(None) for _ in range(2)) == [1, 1]


@pytest.mark.slow
def test_workers_of_joblib_share_the_cores():
    """As in GridSearchCV(n_jobs=...), joblib divides the cores among its workers."""
    many = max(2, joblib.cpu_count())
    assert joblib.Parallel(n_jobs=many)(joblib.delayed(effective_threads)(None) for _ in range(2)) == [1, 1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cgroups")
def test_limits_of_cgroups_are_respected():
    """joblib reads the files of a container with one or two of eight cores."""
    code = """
        import builtins, io, os
        cpu = "/sys/fs/cgroup/cpu"
        files = {cpu + ".max": "100000 100000\\n"}
        real_open, real_exists = builtins.open, os.path.exists
        builtins.open = lambda file, *a, **k: io.StringIO(files[file]) if file in files else real_open(file, *a, **k)
        os.path.exists = lambda path: path in files or (
            not str(path).startswith("/sys/fs/cgroup") and real_exists(path))
        os.cpu_count = lambda: 8
        os.sched_getaffinity = lambda pid: set(range(8))
        from polyseme.utils import effective_threads
        print(effective_threads(None), effective_threads(-1), effective_threads(100))
        os.sched_getaffinity = lambda pid: set(range(7))  # the number of cores is read again if this changes
        files.clear()
        files.update({cpu + "/cpu.cfs_quota_us": "150000\\n", cpu + "/cpu.cfs_period_us": "100000\\n"})
        print(effective_threads(-2), effective_threads(100))
        """
    assert python(code) == "1 1 4\n1 8"


# dense fits in several threads


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_limits_on_blas_of_several_threads_do_not_undo_each_other():
    with threadpool_limits(limits=3, user_api="blas"):
        before = blas_threads()
        inside, leave = threading.Event(), threading.Event()

        def stay():
            with single_threaded_blas():
                inside.set()
                assert leave.wait(60)

        other = threading.Thread(target=stay)
        other.start()
        assert inside.wait(60)
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}  # the other thread still needs it
        leave.set()
        other.join()
        assert blas_threads() == before


def test_concurrent_dense_fits_equal_fits_alone():
    X = RNG.poisson(0.5, (300, 1003)).astype(np.float64)  # large enough for BLAS to use threads

    def fit():
        return PLSA(12, solver="em", random_state=0, max_iter=6, tol=0).fit(X).components_

    alone = fit()
    for limit in (None, 4):  # with and without a limit of the main thread
        with threadpool_limits(limits=limit, user_api="blas"):
            before = blas_threads()
            found = joblib.Parallel(n_jobs=6, backend="threading")(joblib.delayed(fit)() for _ in range(12))
            assert all(np.array_equal(one, alone) for one in found)
            assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_while_blas_is_limited_restores_it_in_the_child():
    found = python(
        """
        import os, threading
        from threadpoolctl import threadpool_info, threadpool_limits
        from polyseme.kernels import single_threaded_blas
        threads = lambda: {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        inside, leave = threading.Event(), threading.Event()
        def stay():
            with single_threaded_blas():
                inside.set()
                leave.wait(60)
        with threadpool_limits(limits=3, user_api="blas"):
            before = threads()
            other = threading.Thread(target=stay)
            other.start()
            inside.wait(60)
            child = os.fork()
            if child == 0:
                same = threads() == before
                with single_threaded_blas():
                    same = same and threads() == {1}
                os._exit(0 if same and threads() == before else 1)
            leave.set()
            other.join()
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert found == "0"
