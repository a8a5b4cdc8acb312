"""What pyLDAvis and topicwizard get of a model."""

import numpy as np
import pytest
import scipy.sparse as sp

from explorer_corpora import themed_page_data
from polyseme import PLSA
from polyseme.explore import pyldavis_arguments, topicwizard_data
from polyseme.explore.page_data import page_data
from polyseme.text import Vectorizer


def test_arguments_of_pyldavis():
    parts = themed_page_data()
    counts = sp.vstack([parts.counts, sp.csr_array((1, parts.counts.shape[1]))]).tocsr()
    model = PLSA(4, random_state=0, tol=1e-4).fit(counts)
    arguments = pyldavis_arguments(model, counts, parts.vocabulary)
    assert set(arguments) == {"topic_term_dists", "doc_topic_dists", "doc_lengths", "vocab", "term_frequency"}
    assert arguments["doc_topic_dists"].shape == (80, 4)  # the empty document is left out
    np.testing.assert_allclose(arguments["topic_term_dists"].sum(axis=1), 1)
    np.testing.assert_allclose(arguments["doc_topic_dists"].sum(axis=1), 1)
    assert arguments["term_frequency"].sum() == arguments["doc_lengths"].sum() == parts.counts.sum()
    assert arguments["vocab"] == parts.vocabulary


def test_topicwizard_gets_texts_and_a_function_for_new_ones():
    texts = ["cats purr and cats sleep", "dogs bark", "cats and dogs", "dogs bark and sleep"]
    vectorizer = Vectorizer()
    counts = vectorizer.fit_transform(texts)
    model = PLSA(2, random_state=0, tol=1e-4).fit(counts)
    made = topicwizard_data(model, counts, vectorizer=vectorizer, texts=texts)
    assert made["corpus"] == texts
    assert made["vocab"].tolist() == list(vectorizer.get_feature_names_out())
    assert (made["document_term_matrix"] != counts).nnz == 0
    np.testing.assert_array_equal(made["document_topic_matrix"], model.doc_topic_)
    np.testing.assert_allclose(made["topic_term_matrix"], model.components_, rtol=1e-6)
    np.testing.assert_array_equal(made["transform"](texts[:2]), model.transform(counts[:2]))
    assert len(set(made["topic_names"])) == 2
    assert topicwizard_data(page_data(model, counts, vectorizer=vectorizer))["transform"] is None
    topicwizard = pytest.importorskip("topicwizard.figures", reason="topicwizard is not installed")
    assert topicwizard.topic_barcharts(made).data
