"""
Real-valued data: wines as mixtures
===================================

Standardized measurements have both signs, so they are no counts. `RealTopicModel` describes every wine as a mixture of
three extreme wines, the corners of the smallest triangle around the data. The cultivars are used for the colors only.
"""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from polyseme import PLSA, RealTopicModel
from polyseme.metrics import label_agreement
from polyseme.plots import plot_simplex
from polyseme.simplex import SimplexDecomposition

wines = load_wine()
X = StandardScaler().fit_transform(wines.data)
model = RealTopicModel(PLSA(3, random_state=0)).fit(X)
print(label_agreement(model.doc_topic_, wines.target))

# %%
# Each corner, by its largest deviations from the mean in standard deviations:

for k, corner in enumerate(model.components_):
    largest = np.abs(corner).argsort()[::-1][:4]
    print(k, ", ".join(f"{wines.feature_names[w]} {corner[w]:+.1f}" for w in largest))

# %%
# In the triangle of the corners, a wine that is a mixture of two of them lies on the edge between them.

plot_simplex(SimplexDecomposition.of(model, X), form="corners")
