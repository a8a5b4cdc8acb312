"""The tree of a hierarchical model, and of levels of topics, in a browser: words and numbers are those of Python."""

from dataclasses import replace

import numpy as np
import pytest

from explorer_corpora import themed_page_data
from polyseme import PLSA, HierarchicalPLSA
from polyseme.explore import write_page

TREE = {"all": {"land": ["kitchen", "music"], "<b>water & coin": ["harbour", "money"]}}


@pytest.fixture(scope="module")
def tree_model():
    return HierarchicalPLSA(TREE, silent="land", random_state=0, tol=1e-3)


@pytest.fixture(scope="module")
def tree_parts(tree_model):
    return themed_page_data(tree_model)


@pytest.fixture(scope="module")
def tree_page(opened, tree_parts, tmp_path_factory):
    path = tmp_path_factory.mktemp("tree") / "tree.html"
    write_page(tree_parts, path)
    return opened(path)


def test_every_node_is_below_its_parent(tree_page, tree_model):
    tree_page.go("#/tree")
    assert "7 nodes, of which 4 leaves" in tree_page.text()
    parents = tree_page.page.eval_on_selector_all(
        ".tree li",
        "items => items.map((li) => [li, li.parentNode.closest('li')].map((i) => Number(i?.dataset.node ?? -1)))",
    )
    assert dict(parents) == dict(enumerate(tree_model.parents_.tolist()))
    assert tree_page.complaints == []
    assert tree_page.requests == [tree_page.address]


def test_nodes_have_their_words_and_weights(tree_page, tree_model, tree_parts):
    tree_page.go("#/tree")
    shown = list(tree_model.nodes(tree_parts.vocabulary, n_words=12)["words"])
    for node in range(len(tree_model.node_word_)):
        item = tree_page.page.locator(f".tree li[data-node='{node}']").first
        words = item.locator("p.words").first.locator("a").all_text_contents()
        if node in tree_model.silent_:
            assert words == []
            assert "no words come from this node" in item.locator("p.words").first.inner_text()
        else:
            assert words == shown[node].split(", ")[: len(words)]
            assert len(words) > 3
        share = item.locator(".figure").first.inner_text()
        weight = 100 * tree_model.node_weights_[node]
        assert share.startswith("<") or abs(float(share.rstrip("%")) - weight) <= 0.51


def test_names_are_text_and_leaves_lead_to_their_topics(tree_page, tree_model):
    tree_page.go("#/tree")
    assert "Node <b>water & coin" in tree_page.text()
    leaf = int(tree_model.leaves_[2])
    tree_page.page.locator(f".tree li[data-node='{leaf}'] a.topic").first.click()
    tree_page.wait("document.getElementById('main').dataset.view === 'topic'")
    assert tree_page.page.evaluate("location.hash") == "#/topic/2"


def test_the_view_is_only_there_for_trees(themes_page, tree_page):
    assert "Tree" in tree_page.text("nav")
    assert "Tree" not in themes_page.text("nav")
    themes_page.go("#/tree")
    assert "There is no tree" in themes_page.text()


def test_axe_finds_nothing_serious(tree_page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    tree_page.go("#/tree")
    tree_page.page.evaluate(axe.axe_script)
    found = tree_page.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [violation["id"] for violation in found["violations"] if violation["impact"] in ("serious", "critical")]
    assert serious == []


def test_finer_levels_are_below_their_topics(opened, tmp_path):
    data = themed_page_data(PLSA(3, random_state=0))
    numbers = {"weight": 0.1, "parent_share": 0.8, "words": ["pan"]}
    leaf = {"level": 12, "topic": 5, "name": "<b>soup", "children": [], **numbers}
    leaves = [leaf, *({**leaf, "topic": topic, "name": f"leaf {topic}"} for topic in range(12) if topic != 5)]
    child = {"level": 6, "topic": 4, "name": "kitchen & pan", "children": leaves, **numbers}
    nodes = [child, *({**child, "topic": n, "name": f"node {n}", "children": []} for n in range(6) if n != 4)]
    weights = [np.full((data.counts.shape[0], size), 1 / size) for size in (6, 12)]
    write_page(replace(data, finer=[nodes, [], []], level_weights=weights), tmp_path / "levels.html")
    page = opened(tmp_path / "levels.html")
    page.go("#/tree")
    assert "Tree of topics" in page.text()
    assert "kitchen & pan" in page.text()
    assert "4 of 6" in page.text()
    page.page.locator(".tree summary").first.click()
    assert "<b>soup" in page.text()
    page.page.locator(".tree").get_by_role("link", name="<b>soup").click()
    page.wait("document.getElementById('main').dataset.view === 'finer'")
    assert page.text("h1") == "<b>soup"
    assert "topic 5 of the level with 12 topics" in page.text()
    page.page.locator("main").get_by_role("link", name="kitchen & pan").click()
    page.wait("document.querySelector('main h1').textContent === 'kitchen & pan'")
    assert "Finer topics" in page.text()
    page.go("#/finer/6.99")
    assert "There is no topic 6.99" in page.text()
    page.go("#/topic/0")
    assert "Finer topics" in page.text()
    page.go("#/topic/1")
    assert "Finer topics" not in page.text()
    assert page.complaints == []
