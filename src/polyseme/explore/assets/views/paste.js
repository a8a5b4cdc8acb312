// A pasted text is counted by the word rules of the run and folded in. All of this happens in the
// page; nothing is sent.

import { PAUSE, empty, h, later } from "../dom.js";
import { count } from "../format.js";
import { model, rules } from "../model/corpus.js";
import { foldIn } from "../model/folding.js";
import { search } from "../model/search.js";
import { card } from "../pieces/card.js";
import { coloredText } from "../pieces/colored_text.js";
import { hitList, hitRows, unknownWords } from "../pieces/hits.js";
import { topicRows, topicShares } from "../pieces/shares.js";

/** @type {import("../router.js").Render} */
export function viewPaste() {
  const title = h(
    "div.title",
    {},
    h("h1", {}, "Paste a text"),
    h(
      "p.lead",
      {},
      "Its topics and similar documents, computed in this page; the text is not sent anywhere.",
    ),
  );
  if (rules.rules.reason)
    return [
      title,
      h(
        "section.card",
        {},
        empty(
          `This is not possible here. ${rules.rules.reason} ` +
            "The page cannot count new texts in the same way.",
        ),
      ),
    ];
  const results = h("div", { "aria-live": "polite" });
  const field = h("textarea", {
    id: "pasted",
    rows: 8,
    placeholder: "Any text …",
    oninput: later(() => refresh(), PAUSE),
  });
  async function refresh() {
    const text = field.value;
    const nodes = text.trim() ? await pasted(text) : [empty("Nothing pasted yet.")];
    if (text === field.value) results.replaceChildren(...nodes);
  }
  refresh();
  return [
    title,
    h(
      "section.card",
      {},
      h("label", { for: "pasted" }, "Text"),
      field,
      model.inference.note && h("p.note", {}, model.inference.note),
    ),
    results,
  ];
}

async function pasted(text) {
  const counts = rules.counts(text);
  if (!counts.words.length) return [empty("The model knows none of these words.")];
  const { hits } = search(counts, 10);
  const unknown = counts.unknown.map((word) => ({ word, nearest: [] }));
  const theta = foldIn(model, counts);
  return [
    h(
      "div.columns.wide-left",
      {},
      h(
        "div.stack",
        {},
        card("Topics", topicShares(theta, "Topics of the text"), {
          save: { name: "topics of the text", chart: true, rows: () => topicRows(theta) },
        }),
        card("Words", coloredText(text, theta), {
          note: [`${count(counts.known, "token")} of the vocabulary.`, unknownWords({ unknown })],
        }),
      ),
      h(
        "div.stack",
        {},
        card(
          "Similar documents",
          hits.length ? await hitList(hits) : empty("No document is similar to it."),
          { save: { name: "similar documents", rows: () => hitRows(hits) } },
        ),
      ),
    ),
  ];
}
