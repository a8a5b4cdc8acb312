// The fragment of the address determines the view: #/view/argument?setting=value.

const VIEWS = {
  topics: { label: "Topics", render: viewTopics },
  documents: { label: "Documents", render: viewDocuments },
  words: { label: "Words", render: viewWords },
  search: { label: "Search", render: viewSearch },
  paste: { label: "Paste a text", render: viewPaste },
  labels: { label: "Labels", render: viewLabels, only: () => corpus?.labeled },
  time: { label: "Time", render: viewTime, only: () => corpus?.periods },
  tree: { label: "Tree", render: viewTree, only: () => model?.tree?.length || model?.finer?.length },
  fit: { label: "Fit", render: viewFit },
  topic: { under: "topics", render: viewTopic },
  document: { under: "documents", render: viewDocument },
  word: { under: "words", render: viewWord },
};

let here = ""; // the address that is shown; a frame may have no history of its own

function parsed(fragment) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/");
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const settings = Object.fromEntries(query.split("&").filter(Boolean).map((pair) => {
    const [key, value = ""] = pair.split("=");
    return [key, decoded(value)];
  }));
  return { view: view in VIEWS ? view : "topics", argument: rest.length ? decoded(rest.join("/")) : undefined, settings };
}

// Goes to an address; the browser's history follows where there is one.
function go(to) {
  if (location.hash === to) return show(to);
  try {
    location.hash = to;
  } catch {
    // a frame without an address
  }
  if (location.hash !== to) show(to);
}

// Changes settings of the address without drawing the view again.
function remember(changes) {
  const { view, argument, settings } = parsed(here);
  here = address(view, argument, { ...settings, ...changes });
  try {
    history.replaceState(null, "", here);
  } catch {
    // a frame without an address
  }
}

function notHere(what, more) {
  return [h("div.title", {}, h("h1", {}, what), h("p.lead", {}, more ?? "", " ", h("a", { href: "#/topics" }, "All topics")))];
}

function navigation(current) {
  const links = Object.entries(VIEWS).filter(([, { label, only }]) => label && (!only || only())).map(([name, { label }]) =>
    h("a", { href: address(name), "aria-current": name === current ? "page" : null }, label));
  document.getElementById("views").replaceChildren(...links);
}

let turn = 0;
async function show(fragment) {
  const mine = ++turn;
  const before = parsed(here);
  const { view, argument, settings } = parsed(fragment);
  const sameView = here && before.view === view && before.argument === argument;
  here = fragment;
  const { render, under } = VIEWS[view];
  const main = document.getElementById("main");
  try {
    if (render.needs) {
      if (!corpus || !rules) say("Loading …");
      await render.needs();
    }
    const nodes = [await render(argument, settings)].flat(Infinity).filter(Boolean);
    if (mine !== turn) return;
    navigation(under ?? view);
    main.replaceChildren(...nodes);
    const heading = main.querySelector("h1");
    document.title = `${heading?.textContent ?? ""} – ${model.title}`;
    document.getElementById("status").textContent = "";
    main.dataset.view = view;
    if (view !== "search") document.getElementById("find-words").value = "";
    if (!sameView && turn > 1) {
      scrollTo(0, 0);
      heading?.setAttribute("tabindex", "-1");
      heading?.focus({ preventScroll: true });
    }
  } catch (error) {
    if (mine === turn) main.replaceChildren(...notHere("This view failed.", String(error)));
    throw error;
  }
}

async function start() {
  await loadModel();
  addEventListener("hashchange", () => show(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
    event.preventDefault();
    const to = link.getAttribute("href");
    if (to.startsWith("#/")) go(to);
    else document.querySelector(to)?.focus();
  });
  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const words = document.getElementById("find-words").value.trim();
    if (words) go(address("search", words));
  });
  await show(location.hash);
  performance.mark("first view");
  document.documentElement.dataset.ready = "first";
  await Promise.all([loadCorpus(), loadRules()]);
  navigation(VIEWS[parsed(here).view].under ?? parsed(here).view);
  performance.mark("all");
  document.documentElement.dataset.ready = "all";
}

// The numbers behind the views, for scripts such as the tests of the page.
window.polyseme = {
  started: start(),
  async search(text, most = 10) {
    await Promise.all([loadCorpus(), loadRules()]);
    const { hits, others } = await searchText(text, most, { reasons: 1000 });
    return [...hits, ...others].map(({ reasons, ...hit }) => ({
      ...hit, words: reasons.map(({ word, weight }) => [model.words[word], weight]),
    }));
  },
  async fold(text) {
    await loadRules();
    const { words, values, unknown } = rules.counts(text);
    return { counts: Array.from(words, (word, i) => [model.words[word], values[i]]), unknown, topics: Array.from(foldIn(model, { words, values })) };
  },
};
