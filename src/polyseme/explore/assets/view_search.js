// Search: the query is folded in here; documents are ranked by words and topics in common.

const HITS = 20;

function viewSearch(argument = "") {
  const field = h("input", { type: "search", id: "query", value: argument, autocomplete: "off", placeholder: "a few words" });
  const results = h("div");
  const form = h("form.field", { onsubmit: (event) => {
    event.preventDefault();
    go(address("search", field.value.trim()));
  } }, h("label", { for: "query" }, "Words"), field, h("button", { type: "submit" }, "Search"));
  document.getElementById("find-words").value = argument;
  if (argument.trim()) results.append(...found(argument));
  else results.append(empty("Ask in a few words: documents are found that share them, or that speak of the same topics in other words."));
  return [h("div.title", {}, h("h1", {}, "Search"), form, rules.rules.reason && h("p.note", {}, `${rules.rules.reason} Here the words of a query are looked up as they are.`)), results];
}
viewSearch.needs = () => Promise.all([loadCorpus(), loadRules()]);

function found(text) {
  const query = rules.counts(text);
  if (!query.words.length) return [empty("None of these words is in the vocabulary.", unknownWords(query))];
  const { hits, theta } = search(query, HITS);
  say(count(hits.length, "document") + " found");
  if (!hits.length) return [empty("No document matches the query.")];
  return [h("div.columns.wide-left", {},
    card("Documents", hitList(hits), {
      note: h("span", {}, "Why: words in ", h("span.reason.both", {}, "both"), ", ", h("span.reason.asked", {}, "only the query"), " or ", h("span.reason.found", {}, "only the document"), ". ", unknownWords(query)),
      save: { name: `search ${text}`, rows: () => hitRows(search(query, 200).hits) } }),
    h("div.stack", {}, card("Topics of the query", topicShares(theta, "Topics of the query"), { save: { name: "topics of the query", chart: true, rows: () => topicRows(theta) } })))];
}

function unknownWords({ unknown }) {
  if (!unknown.length) return "";
  return ` Not in the vocabulary: ${unknown.slice(0, 12).join(", ")}${unknown.length > 12 ? ` and ${unknown.length - 12} more` : ""}.`;
}
