// Paste a text: it is counted by the run's own word rules and folded in, here in the page; it goes nowhere.

function viewPaste() {
  const title = h("div.title", {}, h("h1", {}, "Paste a text"), h("p.lead", {}, "Its topics and the documents like it, computed in this page; the text goes nowhere."));
  if (rules.rules.reason) return [title, h("section.card", {}, empty(`This is off here. ${rules.rules.reason} The page cannot count new texts as that did.`))];
  const results = h("div", { "aria-live": "polite" });
  const field = h("textarea", { id: "pasted", rows: 8, placeholder: "Any text …", oninput: later(() => refresh(), 150) });
  async function refresh() {
    const text = field.value;
    const nodes = text.trim() ? await pasted(text) : [empty("Nothing pasted yet.")];
    if (text === field.value) results.replaceChildren(...nodes);
  }
  refresh();
  return [title, h("section.card", {}, h("label", { for: "pasted" }, "Text"), field,
    model.inference.note && h("p.note", {}, model.inference.note)), results];
}
viewPaste.needs = () => Promise.all([loadCorpus(), loadRules()]);

async function pasted(text) {
  const counts = rules.counts(text);
  if (!counts.words.length) return [empty("The model knows none of these words.")];
  const { hits } = search(counts, 10);
  const theta = foldIn(model, counts);
  return [h("div.columns.wide-left", {},
    h("div.stack", {},
      card("Topics", topicShares(theta, "Topics of the text"), { save: { name: "topics of the text", chart: true, rows: () => topicRows(theta) } }),
      card("Words", coloredText(text, theta), { note: `${count(counts.known, "token")} of the vocabulary.${unknownWords(counts)}` })),
    h("div.stack", {},
      card("Similar documents", hits.length ? await hitList(hits) : empty("No document is like it."), { save: { name: "similar documents", rows: () => hitRows(hits) } })))];
}
