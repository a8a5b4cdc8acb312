// The edits that were made in this page, and how they are applied to the run.

import { h } from "../dom.js";
import { count } from "../format.js";
import { model } from "../model/corpus.js";
import { currentEdits, editState } from "../model/editing.js";
import { card, notHere } from "../pieces/card.js";
import { EDITS_FILE, discardEdits, editButtons } from "../pieces/edit_bar.js";
import { chip } from "../pieces/links.js";

/** @type {import("../router.js").Render} */
export function viewEdits() {
  if (!model.editing)
    return notHere(
      "This page cannot be edited.",
      "It is not the page of a run, to which edits could be applied.",
    );
  const { size, isKept } = editState();
  return [
    h(
      "div.title",
      {},
      h("h1", {}, count(size, "edit")),
      h(
        "p.lead",
        {},
        size ? "Made in this page; the run has not changed." : "Open a topic or a word to edit it.",
      ),
    ),
    size > 0 &&
      card("What changes", h("ol.edits", {}, sentences(currentEdits()).map(line)), {
        note: isKept
          ? "This browser keeps the edits until they are undone or discarded."
          : "This browser does not keep the edits: export them before you close the page.",
      }),
    size > 0 &&
      card(
        "Apply them",
        h(
          "div",
          {},
          h(
            "p",
            {},
            "Export the edits to a file, then apply it to the run; ",
            h("code", {}, "--undo"),
            " takes them back.",
          ),
          h(
            "pre",
            {},
            h("code", {}, `polyseme edit RUN --from ${EDITS_FILE}\npolyseme edit RUN --undo`),
          ),
          h(
            "p",
            {},
            editButtons(),
            " ",
            h("button.small", { type: "button", onclick: discardEdits }, "Discard all"),
          ),
        ),
        { note: differences(currentEdits()) },
      ),
  ];
}

const line = (parts) => h("li", {}, parts);

// Returns a sentence about each edit; numbers and names of topics are those of the run.
function sentences({ rename, merge, hide, delete: deleted, ban }) {
  const targets = new Set(merge.map((group) => group[0]));
  return [
    ...merge.map((group) => [
      "Topics ",
      group.map((topic) => [chip(topic), " "]),
      `become “${rename[group[0]]}”.`,
    ]),
    ...Object.entries(rename)
      .filter(([topic]) => !targets.has(Number(topic)))
      .map(([topic, name]) => ["Topic ", chip(Number(topic)), ` is called “${name}”.`]),
    ...hide.map((topic) => ["Topic ", chip(topic), " is hidden."]),
    ...deleted.map((topic) => ["Topic ", chip(topic), " is deleted."]),
    ...ban.map((word) => [`The word “${word}” is banned.`]),
  ];
}

// Returns in what the page differs from the run after the edits.
function differences({ merge, delete: deleted, ban }) {
  const parts = [
    merge.length > 0 &&
      "The shares of a merged topic are the sums of those of its parts, and its words are ranked " +
        "from the lists of its parts; polyseme edit computes both again.",
    deleted.length > 0 &&
      "A deleted topic is only hidden here; polyseme edit computes the shares of the others again.",
    (merge.length > 0 || deleted.length > 0) &&
      "The numbers of later topics change, finer levels are made again, and so is the map.",
    ban.length > 0 && "Names that contain a banned word are made again.",
  ];
  return parts.filter(Boolean).join(" ") || null;
}
