// The page: its views, and what happens when it opens.

import { address } from "./addresses.js";
import { corpus, loadCorpus, loadModel, loadRules, model } from "./model/corpus.js";
import { takeUpEdits } from "./model/editing.js";
import { searchText } from "./model/search.js";
import { showEditBar } from "./pieces/edit_bar.js";
import { showFilterBar } from "./pieces/filter_bar.js";
import { follow, go, here, navigation, searchField, showAgain } from "./router.js";
import { viewDocument } from "./views/document.js";
import { viewDocuments } from "./views/documents.js";
import { viewEdits } from "./views/edits.js";
import { viewFiner } from "./views/finer.js";
import { viewFit } from "./views/fit.js";
import { viewHelp } from "./views/help.js";
import { viewLabels } from "./views/labels.js";
import { viewMap } from "./views/map.js";
import { viewPaste } from "./views/paste.js";
import { viewTime } from "./views/time.js";
import { viewTopic } from "./views/topic.js";
import { viewTopics } from "./views/topics.js";
import { viewTree } from "./views/tree.js";
import { viewWord } from "./views/word.js";
import { viewWords } from "./views/words.js";

const loadAll = () => Promise.all([loadCorpus(), loadRules()]);

/** @type {Record<string, import("./router.js").View>} */
const VIEWS = {
  map: { label: "Map", render: viewMap, leveled: true },
  topics: { label: "Topics", render: viewTopics, needs: loadCorpus, leveled: true },
  documents: { label: "Documents", render: viewDocuments, needs: loadAll },
  words: { label: "Words", render: viewWords, needs: loadCorpus },
  paste: { label: "Paste a text", render: viewPaste, needs: loadAll },
  labels: {
    label: "Labels",
    render: viewLabels,
    needs: loadCorpus,
    only: () => corpus?.labeled,
    leveled: true,
  },
  time: {
    label: "Time",
    render: viewTime,
    needs: loadCorpus,
    only: () => corpus?.periods,
    leveled: true,
  },
  tree: {
    label: "Tree",
    render: viewTree,
    only: () => model?.tree?.length || model?.finer?.length,
  },
  fit: { label: "Fit", render: viewFit, needs: loadCorpus },
  help: { label: "How to read this page", render: viewHelp },
  edits: { under: "topics", render: viewEdits },
  finer: { under: "topics", render: viewFiner, needs: loadCorpus },
  topic: { under: "topics", render: viewTopic, needs: loadCorpus },
  document: { under: "documents", render: viewDocument, needs: loadAll },
  word: { under: "words", render: viewWord, needs: loadAll },
};

// Goes where a link leads. The page may be in a frame that has no address of its own.
function followLink(event) {
  const link = event.target.closest?.("a[href^='#']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
  event.preventDefault();
  const to = link.getAttribute("href");
  if (to.startsWith("#/")) go(to);
  else document.querySelector(to)?.focus();
}

function findWords(event) {
  event.preventDefault();
  const q = searchField().value.trim();
  const { view, settings } = here();
  if (view === "map") go(address("map", undefined, { ...settings, q }));
  else if (q) go(address("documents", undefined, { q }));
}

async function start() {
  await loadModel();
  await takeUpEdits(() => {
    showEditBar();
    return showAgain();
  });
  showEditBar();
  document.addEventListener("click", followLink);
  document.getElementById("find").addEventListener("submit", findWords);
  await follow(VIEWS, showFilterBar);
  performance.mark("first view");
  document.documentElement.dataset.ready = "first";
  await loadAll();
  navigation();
  performance.mark("all");
  document.documentElement.dataset.ready = "all";
}

// What a search finds, for scripts such as the tests of the page.
Object.assign(window, {
  polyseme: {
    started: start(),
    async search(text, most = 10) {
      await loadAll();
      const { hits, others } = await searchText(text, most);
      return [...hits, ...others];
    },
  },
});
