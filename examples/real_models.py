"""Fit Real-PLSA, Real-LDA and Real-CTM to standardized measurements of wines, and compare them with clusterings.

Run: .venv/bin/python examples/real_models.py [--seed N]
Every wine is a mixture of three corners, extreme wines that lie outside the data. The measurements are standardized, so
they have both signs. The cultivars of the wines are used for the comparison only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from polyseme import LDA, PLSA, CorrelatedTopicModel, RealTopicModel


def accuracy(groups: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of points whose group is the one that is assigned to their label."""
    table = np.zeros((3, 3))
    np.add.at(table, (groups, labels), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(labels))


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of all methods (0)")
    seed = parser.parse_args(argv).seed
    wines = load_wine()
    X = StandardScaler().fit_transform(wines.data)
    models = {
        "Real-PLSA": PLSA(3, random_state=seed),
        "Real-LDA": LDA(3, random_state=seed),
        "Real-CTM": CorrelatedTopicModel(3, random_state=seed),
    }
    fitted = {name: RealTopicModel(model).fit(X) for name, model in models.items()}
    groups = {name: model.doc_topic_.argmax(axis=1) for name, model in fitted.items()}
    groups["k-means"] = KMeans(3, n_init=10, random_state=seed).fit_predict(X)
    groups["Gaussian mixture"] = GaussianMixture(3, n_init=5, random_state=seed).fit_predict(X)

    print("| corner of Real-CTM | largest deviations from the mean, in standard deviations |\n| --- | --- |")
    for k, corner in enumerate(fitted["Real-CTM"].components_):
        largest = np.argsort(-np.abs(corner), kind="stable")[:4]
        print(f"| {k} | {', '.join(f'{wines.feature_names[w]} {corner[w]:+.1f}' for w in largest)} |")
    print("\n| method | accuracy | normalized mutual information |\n| --- | --- | --- |")
    result = {name: accuracy(found, wines.target) for name, found in groups.items()}
    for name, found in groups.items():
        print(f"| {name} | {result[name]:.3f} | {normalized_mutual_info_score(wines.target, found):.3f} |")
    return result


if __name__ == "__main__":
    main()
