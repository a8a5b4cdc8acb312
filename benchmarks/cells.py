"""Programs of blood cells and their FACS types: consensus against cNMF.

Both choose 2,000 genes of the counts and fit every number of programs as often. cNMF runs with its own settings: its
genes, normalization and loss, and outlying spectra set aside at a distance of 0.1, which its guide shows, or kept (2.0,
its default); its time is also measured with the Kullback-Leibler loss, which is ours. The main program of each cell is
compared with the FACS subpopulations and cell types by normalized mutual information. Time is CPU time of the process;
each is the least of the alternating rounds.

    python benchmarks/cells.py [--numbers 5 12] [--fits 10] [--rounds 1] [--only ours cnmf cnmf-kl]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from common import DATA, THREADS, can_import, describe_machine, load_counts, report_figure, report_ratio, require_file

PARTS = ("ours", "cnmf", "cnmf-kl")
LOSSES = {"cnmf": "frobenius", "cnmf-kl": "kullback-leibler"}


def cells() -> tuple[sp.csr_array, list[str], dict[str, list[str]]]:
    """Return counts of cells x genes, names of genes, and two labels of each cell."""
    counts = load_counts(require_file(DATA / "counts" / "pbmc_facs.npz"))
    lines = require_file(DATA / "counts" / "pbmc_facs.labels.tsv").read_text(encoding="utf-8").splitlines()
    _, *names = lines[0].split("\t")
    columns = list(zip(*(line.split("\t") for line in lines[1:]), strict=True))[1:]
    genes = require_file(DATA / "counts" / "pbmc_facs.vocab.txt").read_text(encoding="utf-8").split()
    return counts, genes, {name: list(column) for name, column in zip(names, columns, strict=True)}


def compare(who: str, number: int, usage: Any, labels: dict[str, list[str]]) -> None:
    main = np.asarray(usage).argmax(axis=1)
    shares = (f"{name} {normalized_mutual_info_score(label, main):.3f}" for name, label in labels.items())
    print(f"| {who} | {number} | {' | '.join(shares)} |", flush=True)


def ours(counts: sp.csr_array, genes: list[str], labels: Any, numbers: range, n_fits: int, show: bool) -> float:
    from polyseme.cells import variable_genes
    from polyseme.metrics import frex
    from polyseme.selection import consensus

    started = time.process_time()
    chosen = variable_genes(counts, 2000)
    found = consensus(sp.csr_array(counts[:, chosen]), numbers, n_fits=n_fits, n_jobs=THREADS)
    seconds = time.process_time() - started
    if not show:
        return seconds
    print(f"\n{found.reason}\n")
    print("| method | programs | agreement | |\n|---|---|---|---|")
    for number, solution in found.solutions.items():
        compare("polyseme", number, solution.model.doc_topic_, labels)
    best = found.best
    print("\n| program | share | reproducibility | interval | stability | genes |\n|---|---|---|---|---|---|")
    markers = frex(best.model.components_).argsort(axis=1)[:, ::-1][:, :6]
    for topic, (low, high) in enumerate(best.interval):
        names = " ".join(genes[chosen[gene]] for gene in markers[topic])
        print(
            f"| {topic} | {best.model.topic_weights_[topic]:.3f} | {best.reproducibility[topic]:.2f} | "
            f"{low:.2f} to {high:.2f} | {best.topic_stability[topic]:.2f} | {names} |"
        )
    print()
    return seconds


def peer(
    counts: sp.csr_array, genes: list[str], labels: Any, numbers: range, n_fits: int, show: bool, loss: str
) -> float:
    import anndata
    import pandas as pd
    from cnmf import cNMF

    warnings.simplefilter("ignore")
    adata = anndata.AnnData(sp.csr_matrix(counts, dtype=np.float64))
    adata.var_names = pd.Index([f"{gene}-{number}" for number, gene in enumerate(genes)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.h5ad"
        adata.write_h5ad(path)
        run = cNMF(output_dir=folder, name="cells")
        started = time.process_time()
        run.prepare(
            counts_fn=str(path), components=np.array(numbers), n_iter=n_fits, seed=14, num_highvar_genes=2000,
            beta_loss=loss,
        )  # fmt: skip
        run.factorize(worker_i=0, total_workers=1)
        run.combine()
        run.k_selection_plot(close_fig=True)
        seconds = time.process_time() - started
        if not show:
            return seconds
        for number in numbers:
            for threshold in (0.1, 2.0):
                try:
                    run.consensus(k=number, density_threshold=threshold, show_clustering=False)
                except RuntimeError as error:  # every spectrum is outlying
                    print(f"cNMF, {number} programs, threshold {threshold}: {error}")
                    continue
                usage = run.load_results(K=number, density_threshold=threshold)[0].reindex(adata.obs_names).to_numpy()
                compare(f"cNMF, threshold {threshold}", number, usage, labels)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=int, nargs=2, default=(5, 12))
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    describe_machine("cnmf")
    data, numbers = cells(), range(arguments.numbers[0], arguments.numbers[1] + 1)
    work = f"{arguments.fits} fits of each of {len(numbers)} numbers"
    seconds: dict[str, float] = {}
    only = [part for part in arguments.only if part == "ours" or can_import("cnmf")]
    for turn in range(arguments.rounds):
        for part in only:
            if part == "ours":
                now = ours(*data, numbers, arguments.fits, turn == 0)
            else:
                now = peer(*data, numbers, arguments.fits, turn == 0 and part == "cnmf", LOSSES[part])
            seconds[part] = min(now, seconds.get(part, now))
    for part, value in seconds.items():
        report_figure(f"CPU seconds of {part} for {work}", f"{value:.1f}")
        if part != "ours" and "ours" in seconds:
            report_ratio(work, f"cNMF, {LOSSES[part]} loss", seconds["ours"], value)


if __name__ == "__main__":
    main()
