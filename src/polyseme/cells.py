"""Single cells: counts from AnnData and files, genes that vary more than by chance, and results for AnnData.

Cells are documents, genes words, molecules tokens, and topics gene programs. Estimators take an AnnData as it is and
use its `X`. `read_cells` reads another layer, or a file: .h5ad, and the .h5 files and folders of Cell Ranger.
`annotate` stores a fitted model in an AnnData.

Files may be damaged or hostile: only the arrays that are needed are read, their sizes are checked before, links to
other files are refused, and nothing is unpickled.

Reference: J. Lause, P. Berens, D. Kobak (2021). Analytic Pearson residuals for normalization of single-cell RNA-seq UMI
data. Genome Biology 22.
"""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from polyseme.errors import InputError, MissingExtraError
from polyseme.estimators.base import TopicEstimator
from polyseme.kernels import Array, Floats, check_sparse
from polyseme.utils import check_integer

__all__ = ["annotate", "read_cells", "variable_genes"]

_MOST_BYTES = 2**34
_DISPERSION = 100.0
"""Dispersion of the negative binomial distribution of a gene that varies by chance only, as in Lause et al."""
_GENES_AT_A_TIME = 256
_NAMES_AT_A_TIME = 128
_BYTES_PER_ENTRY = 64
"""Largest length of a line of an .mtx file."""
_READ_BYTES = 2**20


@dataclass(frozen=True, eq=False)
class Cells:
    """Counts of genes in cells.

    Attributes
    ----------
    counts : csr_array of shape (n_cells, n_genes)
        Numbers of molecules.
    cells, genes : list of str
        Names of the rows and columns. A gene that has the name of an earlier one gets a number: MATR3-1.
    """

    counts: sp.csr_array
    cells: list[str]
    genes: list[str]

    def __repr__(self) -> str:
        return f"Cells({len(self.cells):,} cells, {len(self.genes):,} genes)"

    def take_genes(self, columns: Any) -> Cells:
        """Return the cells with some of the genes.

        Parameters
        ----------
        columns : array-like of int or bool
            The genes, such as the result of `variable_genes`.

        Returns
        -------
        Cells
            The same cells, also those without a molecule of these genes.
        """
        chosen = np.arange(len(self.genes))[np.asarray(columns)]
        return Cells(sp.csr_array(self.counts[:, chosen]), self.cells, [self.genes[gene] for gene in chosen])


def read_cells(source: str | PathLike[str] | Any, *, layer: str | None = None, max_bytes: int = _MOST_BYTES) -> Cells:
    """Read the counts of single cells.

    Parameters
    ----------
    source : AnnData or path
        An AnnData object; an .h5ad file; an .h5 file of Cell Ranger; or its folder with matrix.mtx, barcodes.tsv and
        features.tsv (or genes.tsv), each with or without .gz.
    layer : str, default=None
        Layer of an AnnData or .h5ad file. None: `X`.
    max_bytes : int, default=2**34
        Largest size of the counts in memory. A larger file raises InputError before they are read.

    Returns
    -------
    Cells
        The counts with the names of cells and genes.

    Examples
    --------
    >>> from polyseme.cells import read_cells, variable_genes
    >>> cells = read_cells("filtered_feature_bc_matrix.h5")  # doctest: +SKIP
    >>> cells = cells.take_genes(variable_genes(cells.counts, 2000))  # doctest: +SKIP
    """
    limit = check_integer("max_bytes", max_bytes, least=1)
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.is_dir():
            matrix, cells, genes = _read_folder(path, limit)
            layers: list[str] = []
        else:
            matrix, cells, genes, layers = _read_hdf5(path, layer, limit)
        if layer is not None and not layers:
            raise InputError(f"{path.name} has no layers: leave layer out.")
    else:
        layers = list(source.layers)
        if layer is not None and layer not in layers:
            raise InputError(f"layer must be one of {', '.join(layers) or '(none)'}, got {layer!r}.")
        matrix = source.X if layer is None else source.layers[layer]
        cells, genes = list(map(str, source.obs_names)), list(map(str, source.var_names))
    counts = sp.csr_array(matrix)
    check_sparse(counts)
    if counts.shape != (len(cells), len(genes)):
        raise InputError(
            f"The counts have the shape {counts.shape}, but there are {len(cells)} names of cells and {len(genes)} of "
            "genes: the file is damaged."
        )
    if not np.isfinite(counts.data).all() or (counts.data < 0).any():
        raise InputError("The counts must be finite and not negative: use a layer with numbers of molecules.")
    if (counts.data != np.rint(counts.data)).any():
        listed = f" The layers are {', '.join(layers)}." if layers else ""
        warnings.warn(f"These are no whole numbers: topics describe numbers of molecules best.{listed}", stacklevel=2)
    return Cells(counts, cells, _unique(genes))


def variable_genes(counts: Any, n_genes: int = 2000) -> Array:
    """Return the genes whose counts vary most beyond the number of molecules of a cell.

    The variance of a gene is that of its Pearson residuals (x - m) / sqrt(m + m^2 / 100), clipped at the square root of
    the number of cells. m is the share of the gene times the number of molecules of the cell. It is about one for a
    gene with the same share in all cells.

    Parameters
    ----------
    counts : sparse matrix or array-like of shape (n_cells, n_genes)
        Numbers of molecules.
    n_genes : int, default=2000
        Number of genes; all that occur, if there are fewer.

    Returns
    -------
    ndarray of int
        Columns of the genes, in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.cells import variable_genes
    >>> counts = np.random.default_rng(0).poisson(4, (200, 5))
    >>> counts[:100, 3] *= 5  # one gene differs between two halves of the cells
    >>> variable_genes(counts, 1)
    array([3])
    """
    n_genes = check_integer("n_genes", n_genes, least=1)
    variances = residual_variances(counts)
    chosen = np.argsort(-variances, kind="stable")[:n_genes]
    return np.sort(chosen[variances[chosen] > 0])


def residual_variances(counts: Any) -> Floats:
    """Return the variance of the Pearson residuals of each gene; zeros for genes without molecules.

    Parameters
    ----------
    counts : sparse matrix or array-like of shape (n_cells, n_genes)
        Numbers of molecules.

    Returns
    -------
    ndarray of shape (n_genes,)
        Variances, about one without variation between cells.
    """
    X = sp.csc_array(counts, dtype=np.float64)
    depths, totals = X.sum(axis=1), X.sum(axis=0)
    if not totals.sum() > 0:
        raise InputError("There are no molecules: give counts of cells x genes.")
    shares, most = totals / totals.sum(), np.sqrt(X.shape[0])
    variances = np.zeros(X.shape[1])
    for first in range(0, X.shape[1], _GENES_AT_A_TIME):
        genes = slice(first, min(first + _GENES_AT_A_TIME, X.shape[1]))
        expected = np.outer(depths, shares[genes])
        scale = np.sqrt(expected + expected**2 / _DISPERSION)
        block = X[:, genes].toarray() - expected
        residuals = np.divide(block, scale, out=np.zeros_like(block), where=scale > 0)
        variances[genes] = np.clip(residuals, -most, most).var(axis=0)
    return variances


def annotate(adata: Any, model: TopicEstimator, *, reproducibility: Any = None, key: str = "polyseme") -> None:
    """Store a fitted model in an AnnData.

    ``adata.obsm["X_polyseme"]`` gets P(z|d), the usage of the programs in each cell, ``adata.varm["polyseme"]`` P(w|z)
    with a column for each program, and ``adata.uns["polyseme"]`` P(z), the perplexity and the reproducibility. Genes
    that the model does not have get zeros.

    Parameters
    ----------
    adata : AnnData
        The cells of the fit, in their order. It is changed.
    model : estimator
        Model that was fitted to these cells.
    reproducibility : array-like of shape (n_topics,), default=None
        Reproducibility of the programs, such as ``best.reproducibility`` of `polyseme.selection.consensus`.
    key : str, default="polyseme"
        Name of the entries.

    Examples
    --------
    >>> import anndata  # doctest: +SKIP
    >>> from polyseme import PLSA
    >>> from polyseme.cells import annotate
    >>> cells = anndata.read_h5ad("pbmc.h5ad")  # doctest: +SKIP
    >>> annotate(cells, PLSA(10, random_state=0).fit(cells))  # doctest: +SKIP
    """
    usage, programs = np.asarray(model.doc_topic_), np.asarray(model.components_)
    if len(usage) != adata.n_obs:
        raise InputError(
            f"adata has {adata.n_obs} cells, but the model was fitted to {len(usage)}: give the same ones."
        )
    if model.vocabulary_ is None:
        if programs.shape[1] != adata.n_vars:
            raise InputError("The model has other genes and no names: fit it to an AnnData, or with feature_names=.")
        columns = np.arange(adata.n_vars)
    else:
        columns = adata.var_names.get_indexer([str(gene) for gene in model.vocabulary_])
        if (columns < 0).any():
            missing = model.vocabulary_[int(np.flatnonzero(columns < 0)[0])]
            raise InputError(f"adata does not have the gene {missing!r} of the model: give the AnnData of the fit.")
    loadings = np.zeros((adata.n_vars, len(programs)), dtype=programs.dtype)
    loadings[columns] = programs.T
    facts = {
        "model": type(model).__name__,
        "weights": np.asarray(model.topic_weights_),
        "perplexity": float(model.training_perplexity_),
    }
    if reproducibility is not None:
        facts["reproducibility"] = np.asarray(reproducibility, dtype=np.float64)
    adata.obsm[f"X_{key}"], adata.varm[key], adata.uns[key] = usage, loadings, facts


def _unique(names: Sequence[str]) -> list[str]:
    """Return the names, with a number after those that occurred before."""
    taken, found, numbers = set(names), set[str](), dict[str, int]()
    unique = []
    for name in names:
        new = name
        while new in found or (new != name and new in taken):
            numbers[name] = numbers.get(name, 0) + 1
            new = f"{name}-{numbers[name]}"
        found.add(new)
        unique.append(new)
    return unique


# files


def _read_hdf5(path: Path, layer: str | None, limit: int) -> tuple[Any, list[str], list[str], list[str]]:
    """Return counts, names of cells and genes, and the names of the layers of an .h5ad file or an .h5 file."""
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("Reading .h5ad and .h5 files", "cells") from None
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        with h5py.File(path, "r") as file:
            return _Hdf5(file, path.name, limit).cells(layer)
    except (OSError, KeyError, RuntimeError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} is damaged, or no file of single cells: {error}.") from None


@dataclass(frozen=True)
class _Hdf5:
    """The arrays of an open file, checked before they are read."""

    file: Any
    name: str
    limit: int

    def cells(self, layer: str | None) -> tuple[Any, list[str], list[str], list[str]]:
        if "X" in self.file or "layers" in self.file:  # AnnData
            group = self.find("layers") if "layers" in self.file else {}
            layers = list(group)
            if layer is not None and layer not in layers:
                raise InputError(f"layer must be one of {', '.join(layers) or '(none)'}, got {layer!r}.")
            matrix = self.matrix("X" if layer is None else f"layers/{layer}")
            return matrix, self.index("obs"), self.index("var"), layers
        groups = ["matrix"] if "matrix" in self.file else list(self.file)
        if len(groups) != 1:
            raise InputError(f"{self.name} has counts of several genomes, or none: read it with another program.")
        top = groups[0]
        genes = "features/name" if f"{top}/features" in self.file else "gene_names"
        matrix = self.compressed(top, tuple(self.array(f"{top}/shape", 2).tolist())[::-1], sp.csr_array)
        return matrix, self.strings(f"{top}/barcodes"), self.strings(f"{top}/{genes}"), []

    def find(self, path: str) -> Any:
        """Return a part of this file. Raise InputError if it is in another file."""
        import h5py

        place = self.file
        for part in path.split("/"):
            if not isinstance(place.get(part, getlink=True), h5py.HardLink):
                raise InputError(f"{self.name}: {path} is missing or a link to another place, which is not followed.")
            place = place[part]
        if isinstance(place, h5py.Dataset) and (place.is_virtual or place.external):
            raise InputError(f"{self.name}: {path} is stored in another file, which is not read.")
        return place

    def array(self, path: str, size: int | None = None) -> Array:
        """Return a numeric array with at most the limit of bytes."""
        found = self.find(path)
        if found.dtype.kind not in "iufb" or (size is not None and found.size != size):
            raise InputError(f"{self.name}: {path} must be an array of numbers.")
        if found.size * found.dtype.itemsize > self.limit:
            raise InputError(f"{self.name}: {path} needs more than max_bytes={self.limit}: raise it.")
        return np.asarray(found[()])

    def matrix(self, path: str) -> Any:
        """Return a matrix of an .h5ad file, dense or sparse."""
        found = self.find(path)
        if hasattr(found, "dtype"):
            return self.array(path)
        kinds = {"csr_matrix": sp.csr_array, "csc_matrix": sp.csc_array}
        kind = kinds.get(str(found.attrs.get("encoding-type")))
        if kind is None:
            raise InputError(f"{self.name}: {path} must be a csr_matrix, a csc_matrix or an array.")
        return self.compressed(path, tuple(int(size) for size in found.attrs["shape"]), kind)

    def compressed(self, path: str, shape: tuple[int, ...], kind: Any) -> Any:
        data, indices, indptr = (self.array(f"{path}/{name}") for name in ("data", "indices", "indptr"))
        if len(shape) != 2 or min(shape) < 0 or indptr.size != shape[int(kind is sp.csc_array)] + 1:
            raise InputError(f"{self.name}: the shape of {path} does not fit its entries.")
        found = kind((data, indices, indptr), shape=shape)
        check_sparse(found)
        return found

    def index(self, table: str) -> list[str]:
        """Return the names of the rows of a table of an .h5ad file."""
        return self.strings(f"{table}/{self.find(table).attrs['_index']}")

    def strings(self, path: str) -> list[str]:
        """Return an array of strings with at most the limit of bytes, read in parts: each may be long."""
        found, names, left = self.find(path), list[str](), self.limit
        for first in range(0, len(found), _NAMES_AT_A_TIME):
            part = found[first : first + _NAMES_AT_A_TIME]
            names += [value.decode("utf-8") if isinstance(value, bytes) else str(value) for value in part]
            left -= sum(len(name) for name in names[first:])
            if left < 0:
                raise InputError(f"{self.name}: {path} needs more than max_bytes={self.limit}: raise it.")
        return names


def _read_folder(folder: Path, limit: int) -> tuple[Any, list[str], list[str]]:
    """Return counts and names from a folder of Cell Ranger."""
    cells = [line.split("\t")[0] for line in _lines(_one_of(folder, "barcodes.tsv"), limit)]
    rows = [line.split("\t") for line in _lines(_one_of(folder, "features.tsv", "genes.tsv"), limit)]
    path = _one_of(folder, "matrix.mtx")
    head = next((line.split() for line in _lines(path, limit) if not line.startswith("%")), [])
    if len(head) != 3 or not all(part.isdecimal() and len(part) < 19 for part in head):
        raise InputError(
            f"{path.name} is no table in the format Matrix Market: its first line must have three numbers."
        )
    n_genes, n_cells, n_entries = map(int, head)
    if (n_genes, n_cells) != (len(rows), len(cells)):
        raise InputError(
            f"{path.name} has {n_genes} genes and {n_cells} cells, but there are {len(rows)} and {len(cells)} names."
        )
    if 16 * n_entries > limit:
        raise InputError(f"{path.name} needs more than max_bytes={limit}: raise it.")
    content = io.BytesIO(b"".join(_parts(path, _BYTES_PER_ENTRY * (n_entries + 100))))
    try:
        matrix = scipy.io.mmread(content)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path.name} is damaged: {error}.") from None
    return matrix.T, cells, [row[1] if len(row) > 1 else row[0] for row in rows]


def _one_of(folder: Path, *names: str) -> Path:
    """Return the file of a folder with one of these names, with or without .gz."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise InputError(f"{folder} has no file {' or '.join(names)}: give a folder of Cell Ranger.")


def _parts(path: Path, most: int) -> Iterator[bytes]:
    """Yield the content of a file, which may be compressed, as long as it has at most this many bytes."""
    size = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while part := file.read(_READ_BYTES):
                size += len(part)
                if size > most:
                    raise InputError(f"{path.name} is longer than its first lines say, or than max_bytes.")
                yield part
    except (EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path.name} is damaged: {error}.") from None


def _lines(path: Path, most: int) -> Iterator[str]:
    """Yield the lines of a text file."""
    left = b""
    for part in _parts(path, most):
        *lines, left = (left + part).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").rstrip("\r")
    if left:
        yield left.decode("utf-8", "replace")
