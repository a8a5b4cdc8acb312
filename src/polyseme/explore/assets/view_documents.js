// All documents, with a filter by title; all words, with a filter by their letters.

const AT_ONCE = 40;

// A field that filters a list, and a button that shows more of the list.
function browser({ label, settings, find, list, total, noun }) {
  const holder = h("div");
  const statusLine = h("p.quiet", { role: "status" });
  let shown = AT_ONCE;
  const field = h("input", { type: "search", id: "filter", value: settings.filter ?? "", autocomplete: "off",
    oninput: later(() => {
      shown = AT_ONCE;
      remember({ filter: field.value.trim() || undefined });
      refresh();
    }, 120) });
  function refresh() {
    const found = find(field.value.trim().toLowerCase(), shown);
    statusLine.textContent = found.all === total ? count(total, noun) : `${wholeNumber.format(found.all)} of ${count(total, noun)}`;
    holder.replaceChildren(found.items.length ? list(found.items) : empty(`No ${noun} contains “${field.value.trim()}”.`),
      found.all > found.items.length ? h("button.more", { type: "button", onclick: () => {
        shown += 2 * AT_ONCE;
        refresh();
      } }, "Show more") : "");
  }
  refresh();
  return h("div", {}, h("div.field", {}, h("label", { for: "filter" }, label), field), statusLine, holder);
}

function viewDocuments(_, settings) {
  const find = (part, most) => {
    const items = [];
    let all = 0;
    const listed = new Set();
    for (let d = 0; d < model.n_documents; d++) {
      if (part && !corpus.titles[d].toLowerCase().includes(part)) continue;
      if (listed.has(corpus.groups[d])) continue;
      if (corpus.copies) listed.add(corpus.groups[d]);
      if (all++ < most) items.push(d);
    }
    return { items, all };
  };
  const list = (items) => documentList(items.map((d) => ({ document: d, shown: count(corpus.tokens[d], "token") })));
  return [
    h("div.title", {}, h("h1", {}, "Documents"), h("p.lead", {}, "Each bar shows the topics of a document.", corpus.copies && " Near-duplicates are listed once.")),
    h("section.card", {}, browser({ label: "Title contains", settings, find, list, total: model.n_documents, noun: "document" })),
  ];
}
viewDocuments.needs = loadCorpus;

let wordsByTotal = null;
function viewWords(_, settings) {
  wordsByTotal ??= Array.from(model.word_totals.keys()).sort((a, b) => model.word_totals[b] - model.word_totals[a] || a - b);
  const find = (part, most) => {
    const found = part ? wordsByTotal.filter((word) => model.words[word].toLowerCase().includes(part)) : wordsByTotal;
    return { items: found.slice(0, 2 * most), all: found.length };
  };
  const list = (items) => h("ul.words", {}, items.map((word) => {
    const first = sensesOf(word)[0];
    return h("li", {}, wordLink(word), first ? chip(first.topic) : null, h("span.quiet", {}, wholeNumber.format(model.word_totals[word])));
  }));
  return [
    h("div.title", {}, h("h1", {}, "Words"), h("p.lead", {}, "Each word with its most probable topic and its number of tokens; the most frequent first.")),
    h("section.card", {}, browser({ label: "Word contains", settings, find, list, total: model.n_words, noun: "word" })),
  ];
}
