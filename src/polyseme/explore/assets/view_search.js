// Search: documents are ranked by the words that they share with the query; topics complement them.

const HITS = 20;

async function viewSearch(argument = "") {
  const field = document.getElementById("find-words");
  field.value = argument;
  const title = h("div.title", {}, h("h1", {}, argument.trim() ? `Search: ${argument.trim()}` : "Search"),
    rules.rules.reason && h("p.note", {}, `${rules.rules.reason} Here the words of a query are looked up as they are.`),
    /["“”«»]/.test(argument) && h("p.note", {}, "The page looks for the words of a phrase one by one; polyseme search finds exact phrases."));
  if (!argument.trim()) {
    field.focus();
    return [title, empty("Write a few words in the field above: documents are found that contain them, and others on the same topics.")];
  }
  return [title, ...(await found(argument))];
}
viewSearch.needs = () => Promise.all([loadCorpus(), loadRules()]);

async function found(text) {
  const query = rules.counts(text);
  if (!query.words.length) return [empty("None of these words is in the vocabulary.", unknownWords(query))];
  const { hits, topics } = search(query, HITS);
  say(count(hits.length, "document") + " found");
  if (!hits.length) return [empty("No document matches the query.")];
  return [h("div.columns.wide-left", {},
    card("Documents", await hitList(hits, query.words), {
      note: h("span", {}, "The number is the score. Below each text are the words that it comes from: in ", h("span.reason.both", {}, "both"), ", ", h("span.reason.asked", {}, "only the query"), " or ", h("span.reason.found", {}, "only the document"), ". ", unknownWords(query)),
      save: { name: `search ${text}`, rows: () => hitRows(search(query, 200).hits) } }),
    h("div.stack", {}, card("Topics of the query", topicShares(topics, "Topics of the query"), {
      note: "The topics of the documents that share most words with it.",
      save: { name: "topics of the query", chart: true, rows: () => topicRows(topics) } })))];
}

function unknownWords({ unknown }) {
  if (!unknown.length) return "";
  return ` Not in the vocabulary: ${unknown.slice(0, 12).join(", ")}${unknown.length > 12 ? ` and ${unknown.length - 12} more` : ""}.`;
}
