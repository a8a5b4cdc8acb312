"""Very large and very small counts give finite, normalized results or a clear error, under every instruction set."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import LDA, LSA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, InputError, RealTopicModel, TensorPLSA
from polyseme import _kernels as kernels
from polyseme.scale import write_shards
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
RUNNABLE = INSTRUCTION_SETS[: INSTRUCTION_SETS.index(kernels.best_isa()) + 1]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Return the output and the weights of a process limited to each instruction set."""
    folder, found = tmp_path_factory.mktemp("fits"), {}
    for isa in RUNNABLE:
        paths = os.pathsep.join([str(HERE.parent / "helpers"), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "POLYSEME_ISA": isa, "PYTHONPATH": paths}
        command = [sys.executable, str(HERE / "extreme_fits.py"), str(folder / f"{isa}.npz")]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        with np.load(folder / f"{isa}.npz") as weights:
            found[isa] = ended.stdout, dict(weights)
    return found


@pytest.mark.parametrize("isa", RUNNABLE)
def test_every_fit_is_finite_and_normalized(fits, isa):
    printed, weights = fits[isa]
    assert printed == ""
    assert len(weights) > 250


def test_instruction_sets_agree(fits):
    """Weights differ by at most 6e-5, because of the order of rounding; the limit is 1e-3.

    The correlated model and the tree are left out, because their fits to such counts have many optima, and so is the
    absolute loss, because medians are not unique.
    """
    reference = fits[RUNNABLE[0]][1]
    for isa in RUNNABLE[1:]:
        for name, weights in fits[isa][1].items():
            if name.startswith(("PLSA", "NMF", "LDA")) and "absolute" not in name:
                atol = 1e-3 * np.abs(weights).max()
                np.testing.assert_allclose(weights, reference[name], rtol=0, atol=atol, err_msg=f"{isa}: {name}")


COUNTS = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [1, 0, 2, 2]], dtype=np.float64)
KINDS = {
    kind.__name__: kind
    for kind in (PLSA, NMF, LDA, CorrelatedTopicModel, TensorPLSA, LSA, HierarchicalPLSA)
}  # fmt: skip
MAKERS = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
TOO_FAR = pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        (1e39, "float32", "between 1e-10 and 1e+10 in float32, got 1e+39: rescale the data, or use float64"),
        (1e-39, "float32", "between 1e-10 and 1e+10 in float32, got 1e-39"),
        (1e101, "float64", "between 1e-30 and 1e+30 in float64, got 1e+101: rescale the data."),
        (5e-324, "float64", "between 1e-30 and 1e+30 in float64, got 4.94e-324"),
    ],
)


def made(kind, dtype):
    return kind(dtype=dtype) if kind is HierarchicalPLSA else kind(2, dtype=dtype)


def spoiled(value, layout):
    data = COUNTS.copy()
    data[1, 0] = value
    return layout(data)


@MAKERS
@LAYOUTS
@TOO_FAR
def test_counts_out_of_range_are_refused(kind, layout, value, dtype, words):
    with pytest.raises(InputError) as error:
        made(kind, dtype).fit(spoiled(value, layout))
    assert words in sentence(error)


@MAKERS
@TOO_FAR
def test_transform_refuses_counts_beyond_the_type_of_the_factors(kind, value, dtype, words):
    model = made(kind, dtype).fit(COUNTS)
    with pytest.raises(InputError) as error:
        model.transform(spoiled(value, np.asarray))
    assert words in sentence(error)


def test_integers_beyond_float32_are_refused():
    with pytest.raises(InputError, match="got 5e\\+10"):
        PLSA(2).fit(COUNTS.astype(np.int64) * 10**10)
    model = PLSA(2, dtype="float64", random_state=0).fit(COUNTS.astype(np.int64) * 10**10)
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1)


@pytest.mark.parametrize("kind", [PLSA, NMF, LDA, CorrelatedTopicModel])
@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_sample_weights_out_of_range_are_refused(kind, weight):
    with pytest.raises(InputError, match="Every sample weight must be 0 or between"):
        kind(2).fit(COUNTS, sample_weight=[1, weight, 1, 1])


@pytest.mark.parametrize("shape", ["array", "table"])
def test_tensors_of_three_modes_are_checked_as_matrices_are(shape):
    tensor = np.ones((3, 2, 2))
    tensor[0, 0, 0] = 1e300
    table = {"a": ["x", "y"], "b": ["u", "v"], "c": ["p", "q"], "n": [1.0, 1e300]}
    with pytest.raises(InputError, match="Every count must be 0 or between"):
        TensorPLSA(2).fit(tensor) if shape == "array" else TensorPLSA(2, counts="n").fit(table)


@pytest.mark.parametrize("volume", ["data", "farthest", "minimum"])
@pytest.mark.parametrize(("scale", "dtype"), [(1e300, "float64"), (1e-310, "float64"), (1e37, "float32")])
def test_points_out_of_range_are_refused(volume, scale, dtype):
    points = np.random.default_rng(0).normal(size=(20, 2)) * scale
    with pytest.raises(InputError, match="The largest entry"):
        RealTopicModel(PLSA(3), volume=volume).fit(points.astype(dtype))


@pytest.mark.parametrize("volume", ["data", "farthest", "minimum"])
@pytest.mark.parametrize(("scale", "dtype"), [(1e28, "float64"), (1e-29, "float64"), (1e9, "float32")])
def test_points_of_any_scale_have_the_same_weights(volume, scale, dtype):
    """The map to the simplex divides by the scale of the data; 1e-3 is far above the effect of rounding."""
    points = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 60) @ np.array([[-2.0, 0.0], [1.0, 3.0], [1.0, -1.0]])
    plain, scaled = (
        RealTopicModel(PLSA(3, random_state=0), volume=volume).fit_transform((points * size).astype(dtype))
        for size in (1, scale)
    )
    np.testing.assert_allclose(scaled, plain, atol=1e-3)


def test_a_squared_error_that_rounds_to_nothing_is_zero():
    """With one entry of 1e30, the squared error is small beside 1e60, and never negative."""
    counts = np.array([[1e30, 3, 0, 1], [5, 2, 0, 1], [0, 1, 3, 4], [1, 0, 2, 2]])
    for data in (counts, sp.csr_array(counts)):
        model = NMF(3, loss="squared", random_state=0).fit(data)
        assert 0 <= model.reconstruction_err_ < 1e-12 * 1e60


@pytest.mark.parametrize("value", [1e39, 1e-39])
def test_shards_refuse_counts_out_of_range(tmp_path, value):
    with pytest.raises(InputError, match="Every count must be 0 or between"):
        write_shards([spoiled(value, sp.csr_array)], tmp_path / "shards")
