"""Single cells: files of AnnData and Cell Ranger, damaged ones, variable genes, and results in an AnnData."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from polyseme import LDA, NMF, PLSA, InputError
from polyseme.cells import annotate, read_cells, residual_variances, variable_genes
from polyseme.selection import consensus

NAMES = [f"cell{number}" for number in range(40)]
GENES = ["ACTB", "MATR3", "CD3E", "MATR3", *(f"gene{number}" for number in range(8))]
UNIQUE = ["ACTB", "MATR3", "CD3E", "MATR3-1", *GENES[4:]]


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    rng = np.random.default_rng(0)
    programs = rng.dirichlet(np.full(12, 0.3), 3)
    return np.array([rng.multinomial(rng.integers(30, 300), programs[cell % 3]) for cell in range(40)])


@pytest.fixture
def adata(counts):
    anndata = pytest.importorskip("anndata")
    made = anndata.AnnData(sp.csr_matrix(np.log1p(counts)), layers={"counts": sp.csc_matrix(counts)})
    made.obs_names, made.var_names = NAMES, UNIQUE
    return made


def write_10x_hdf5(path: Path, counts: np.ndarray, old: bool = False) -> None:
    h5py = pytest.importorskip("h5py")
    matrix = sp.csr_array(counts)
    with h5py.File(path, "w") as file:
        group = file.create_group("GRCh38" if old else "matrix")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(matrix, name)
        group["shape"], group["barcodes"] = counts.shape[::-1], np.array(NAMES, dtype="S")
        group["gene_names" if old else "features/name"] = np.array(GENES, dtype="S")


def write_folder(folder: Path, counts: np.ndarray, compressed: bool) -> None:
    folder.mkdir()
    scipy.io.mmwrite(folder / "matrix.mtx", sp.coo_array(counts.T))
    (folder / "barcodes.tsv").write_text("".join(f"{name}\n" for name in NAMES))
    genes = "".join(f"ENSG{number}\t{name}\tGene Expression\n" for number, name in enumerate(GENES))
    (folder / ("features.tsv" if compressed else "genes.tsv")).write_text(genes)
    for path in list(folder.iterdir()) if compressed else ():
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


def check(cells, counts) -> None:
    np.testing.assert_array_equal(cells.counts.toarray(), counts)
    assert (cells.cells, cells.genes) == (NAMES, UNIQUE)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_folder_of_cell_ranger_is_read(counts, tmp_path, compressed):
    write_folder(tmp_path / "run", counts, compressed)
    check(read_cells(tmp_path / "run"), counts)


@pytest.mark.parametrize("old", [False, True])
def test_an_hdf5_file_of_cell_ranger_is_read(counts, tmp_path, old):
    write_10x_hdf5(tmp_path / "run.h5", counts, old)
    check(read_cells(tmp_path / "run.h5"), counts)


@pytest.mark.parametrize("dense", [False, True])
def test_an_annotated_file_and_object_are_read_by_layer(adata, counts, tmp_path, dense):
    if dense:
        adata.layers["counts"] = counts
    adata.write_h5ad(tmp_path / "cells.h5ad", compression="gzip")
    for source in (adata, tmp_path / "cells.h5ad", str(tmp_path / "cells.h5ad")):
        check(read_cells(source, layer="counts"), counts)
        with pytest.warns(UserWarning, match=r"no whole numbers.* The layers are counts\."):
            logs = read_cells(source)
        np.testing.assert_allclose(logs.counts.toarray(), np.log1p(counts))
        with pytest.raises(InputError, match="layer must be one of counts, got 'raw'"):
            read_cells(source, layer="raw")


def test_larger_files_than_the_limit_are_refused_before_they_are_read(adata, counts, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    write_folder(tmp_path / "run", counts, False)
    write_10x_hdf5(tmp_path / "run.h5", counts)
    for name in ("cells.h5ad", "run", "run.h5"):
        with pytest.raises(InputError, match=r"max_bytes"):
            read_cells(tmp_path / name, max_bytes=200)


def test_links_to_other_files_are_not_followed(counts, tmp_path):
    h5py = pytest.importorskip("h5py")
    write_10x_hdf5(tmp_path / "other.h5", counts)
    for number, link in enumerate((h5py.ExternalLink("other.h5", "/matrix/data"), h5py.SoftLink("/matrix/indices"))):
        path = tmp_path / f"{number}.h5"
        write_10x_hdf5(path, counts)
        with h5py.File(path, "a") as file:
            del file["matrix/data"]
            file["matrix/data"] = link
        with pytest.raises(InputError, match="matrix/data is missing or a link to another place"):
            read_cells(path)
    path = tmp_path / "external.h5"
    write_10x_hdf5(path, counts)
    with h5py.File(path, "a") as file:
        size = file["matrix/data"].shape
        del file["matrix/data"]
        file.create_dataset("matrix/data", size, "i8", external=[(str(tmp_path / "other.h5"), 0, 8 * size[0])])
    with pytest.raises(InputError, match="matrix/data is stored in another file"):
        read_cells(path)


def damaged_indices(group) -> None:
    group["indices"][3] = 10**6


def damaged_shape(group) -> None:
    group["shape"][1] = 10**9


def damaged_names(group) -> None:
    del group["barcodes"]
    group["barcodes"] = np.array(NAMES[1:], dtype="S")


def negative(group) -> None:
    group["data"][0] = -1


def text(group) -> None:
    del group["data"]
    group["data"] = np.array(["x"], dtype="S")


@pytest.mark.parametrize("damage", [damaged_indices, damaged_shape, damaged_names, negative, text])
def test_damaged_files_raise_one_sentence(counts, tmp_path, damage):
    h5py = pytest.importorskip("h5py")
    write_10x_hdf5(tmp_path / "run.h5", counts)
    with h5py.File(tmp_path / "run.h5", "a") as file:
        damage(file["matrix"])
    with pytest.raises(InputError):
        read_cells(tmp_path / "run.h5")


def test_what_is_no_file_of_cells_raises_one_sentence(counts, tmp_path):
    (tmp_path / "text.h5ad").write_text("no HDF5")
    pytest.importorskip("h5py")
    with pytest.raises(InputError, match=r"text\.h5ad is damaged, or no file of single cells"):
        read_cells(tmp_path / "text.h5ad")
    with pytest.raises(InputError, match="There is no file"):
        read_cells(tmp_path / "none.h5ad")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("12 40 999999999999999999\n", "needs more than max_bytes"),
        ("12 39 1\n1 1 1\n", "12 genes and 39 cells, but there are 12 and 40 names"),
        ("12 40 1\n13 1 1\n", r"matrix\.mtx is damaged"),
        ("12 40 1\n" + 1000 * "1 1 1000000000\n", "longer than its first lines say"),
        ("a b c\n", "its first line must have three numbers"),
    ],
)
def test_damaged_folders_raise_one_sentence(counts, tmp_path, head, message):
    write_folder(tmp_path / "run", counts, False)
    (tmp_path / "run" / "matrix.mtx").write_text("%%MatrixMarket matrix coordinate integer general\n" + head)
    with pytest.raises(InputError, match=message):
        read_cells(tmp_path / "run")


def test_a_folder_without_names_says_what_is_missing(counts, tmp_path):
    write_folder(tmp_path / "run", counts, False)
    (tmp_path / "run" / "genes.tsv").unlink()
    with pytest.raises(InputError, match=r"has no file features\.tsv or genes\.tsv"):
        read_cells(tmp_path / "run")


def test_residual_variances_are_those_of_dense_residuals():
    rng = np.random.default_rng(1)
    X = rng.poisson(rng.gamma(0.5, 2, (60, 300)))
    X[:, 7] = 0
    expected = X.sum(axis=1, keepdims=True) * X.sum(axis=0) / X.sum()
    with np.errstate(invalid="ignore"):
        residuals = np.clip((X - expected) / np.sqrt(expected + expected**2 / 100), -np.sqrt(60), np.sqrt(60))
    variances = residual_variances(sp.csr_array(X))
    np.testing.assert_allclose(variances, np.nan_to_num(residuals.var(axis=0)), rtol=1e-10, atol=1e-12)
    assert variances[7] == 0


def test_genes_that_vary_are_chosen():
    rng = np.random.default_rng(2)
    shares = np.tile(rng.dirichlet(np.full(50, 5.0)), (200, 1))
    shares[:100, :5] *= 4
    X = np.array([rng.multinomial(1000, row / row.sum()) for row in shares])
    np.testing.assert_array_equal(variable_genes(X, 5), range(5))
    assert len(variable_genes(np.eye(4) * 3, 2000)) == 4


@pytest.mark.parametrize("kind", [PLSA, LDA, NMF])
def test_estimators_take_an_annotated_object(adata, counts, kind):
    adata.X = sp.csr_matrix(counts)
    model = kind(3, random_state=0).fit(adata)
    expected = kind(3, random_state=0).fit(sp.csr_array(counts), feature_names=UNIQUE)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.transform(adata), expected.transform(sp.csr_array(counts)))
    assert list(model.vocabulary_) == UNIQUE
    with pytest.raises(InputError, match="X has other genes than the data of the fit"):
        model.transform(adata[:, ::-1])


def test_a_model_is_stored_in_an_annotated_object(adata, counts, tmp_path):
    anndata = pytest.importorskip("anndata")
    adata.X = sp.csr_matrix(counts)
    genes = variable_genes(counts, 9)
    found = consensus(adata[:, genes], 3, n_fits=4).best
    annotate(adata, found.model, reproducibility=found.reproducibility)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(back.obsm["X_polyseme"], found.model.doc_topic_)
    np.testing.assert_array_equal(back.varm["polyseme"][genes], found.model.components_.T)
    assert not back.varm["polyseme"][np.setdiff1d(range(12), genes)].any()
    np.testing.assert_array_equal(back.uns["polyseme"]["reproducibility"], found.reproducibility)
    with pytest.raises(InputError, match="adata has 39 cells, but the model was fitted to 40"):
        annotate(adata[1:].copy(), found.model)
    with pytest.raises(InputError, match="adata does not have the gene"):
        annotate(adata[:, [0]].copy(), found.model)
