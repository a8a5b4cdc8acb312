// What a reader can change about a topic or a word.

import { address, topicAddress } from "../addresses.js";
import { h, say } from "../dom.js";
import { model } from "../model/corpus.js";
import { currentEdits, edit } from "../model/editing.js";
import {
  groupOf,
  nameProblem,
  withBan,
  withHidden,
  withMerge,
  withName,
  withoutTopic,
} from "../model/edits.js";
import { topWords } from "../model/topics.js";
import { topicName } from "./names.js";
import { go } from "../router.js";

const WORDS_OFFERED = 15;

let isUnfolded = false; // as the reader has left it

/**
 * Returns what a reader can change about a topic, folded; null if the page is not of a run.
 *
 * @param {number} topic
 */
export function topicEditor(topic) {
  if (!model.editing) return null;
  const { merges, hides } = model.editing;
  return h(
    "details.editor",
    { open: isUnfolded, ontoggle: ({ currentTarget }) => (isUnfolded = currentTarget.open) },
    h("summary", {}, "Edit this topic"),
    nameForm(topic),
    merges && mergeForm(topic),
    h(
      "div.field",
      {},
      hides &&
        h(
          "button",
          {
            type: "button",
            onclick: () => leave(withHidden(currentEdits(), topic), `Topic ${topic} is hidden.`),
          },
          "Hide",
        ),
      merges &&
        h(
          "button",
          {
            type: "button",
            onclick: () => leave(withoutTopic(currentEdits(), topic), `Topic ${topic} is deleted.`),
          },
          "Delete",
        ),
      hides &&
        h(
          "span.quiet",
          {},
          merges
            ? "A hidden topic stays in the model, out of lists and the map; a deleted one does not."
            : "A hidden topic stays in the model, out of lists and the map.",
        ),
    ),
    hides &&
      h(
        "div.bans",
        {},
        h("span", {}, "Ban words: "),
        topWords(topic, WORDS_OFFERED).map((word) => [banButton(word), " "]),
      ),
  );
}

function leave(edits, message) {
  go(address("topics"));
  return edit(edits).then(() => say(message));
}

function nameForm(topic) {
  const problem = h("span.problem", { role: "alert", id: "edit-name-problem" });
  const field = h("input", {
    type: "text",
    id: "edit-name",
    value: topicName(topic),
    autocomplete: "off",
    "aria-describedby": "edit-name-problem",
  });
  const submit = (event) => {
    event.preventDefault();
    problem.textContent = nameProblem(field.value);
    if (problem.textContent) return field.focus();
    edit(withName(currentEdits(), topic, field.value)).then(() =>
      say(`Topic ${topic} is called ${field.value.trim()}.`),
    );
  };
  return h(
    "form.field",
    { onsubmit: submit },
    h("label", { for: "edit-name" }, "Name"),
    field,
    h("button", { type: "submit" }, "Rename"),
    problem,
  );
}

function mergeForm(topic) {
  const others = model.order.filter((other) => other !== topic);
  if (!others.length) return null;
  const distance = (other) => model.distances[topic * model.K + other];
  others.sort((a, b) => distance(a) - distance(b));
  const field = h(
    "select",
    { id: "edit-merge" },
    others.map((other) => h("option", { value: other }, `${other}  ${topicName(other)}`)),
  );
  const submit = (event) => {
    event.preventDefault();
    const other = Number(field.value);
    const heavier = model.weights[topic] >= model.weights[other] ? topic : other;
    const edits = withMerge(currentEdits(), topic, other, topicName(heavier));
    const target = groupOf(edits, topic)[0];
    if (target !== topic) go(topicAddress(target));
    edit(edits).then(() => say(`Topics ${topic} and ${other} are merged into topic ${target}.`));
  };
  return h(
    "form.field",
    { onsubmit: submit },
    h("label", { for: "edit-merge" }, "Merge with"),
    field,
    h("button", { type: "submit" }, "Merge"),
  );
}

/**
 * Returns a button that bans a word.
 *
 * @param {string} word
 * @param {string} [label]
 */
export function banButton(word, label = `${word} ✕`) {
  return h(
    "button.small",
    {
      type: "button",
      title: `Ban ${word}: hide it in all lists and names`,
      onclick: () =>
        edit(withBan(currentEdits(), word)).then(() => say(`The word ${word} is banned.`)),
    },
    label,
  );
}
