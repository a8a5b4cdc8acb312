// A text in the colors of its topics.

import { wordAddress } from "../addresses.js";
import { h } from "../dom.js";
import { percent } from "../format.js";
import { model, rules } from "../model/corpus.js";
import { likeliest } from "../model/folding.js";
import { chip } from "./links.js";
import { colorOf, topicName, topicTitle } from "./names.js";
import { go } from "../router.js";

/**
 * Returns a text with each word on the color of its most probable topic, and buttons that highlight
 * one topic.
 *
 * @param {string} text
 * @param {Float64Array} theta
 */
export function coloredText(text, theta) {
  const tokens = new Map();
  const chosen = new Map();
  const spans = rules.marked(text).map(({ text: piece, column }) => {
    if (column === undefined) return piece;
    if (!chosen.has(column)) chosen.set(column, likeliest(model, theta, column));
    const { topic, share } = chosen.get(column);
    if (topic >= 0) tokens.set(topic, (tokens.get(topic) ?? 0) + 1);
    const hint = topic < 0 ? "common language" : `topic ${topic}, ${percent(share)}`;
    return h(
      "span.w",
      { classes: colorOf(topic), title: hint, data: { topic, word: column } },
      piece,
    );
  });
  const body = h(
    "div.text",
    {
      onclick: ({ target }) => target.dataset.word && go(wordAddress(Number(target.dataset.word))),
    },
    spans,
  );
  const buttons = [...tokens]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 10)
    .map(([topic, n]) =>
      h(
        "button.pick",
        {
          type: "button",
          "aria-pressed": "false",
          title: topicTitle(topic),
          onclick: ({ currentTarget }) => {
            const on = currentTarget.getAttribute("aria-pressed") !== "true";
            buttons.forEach((button) =>
              button.setAttribute("aria-pressed", String(on && button === currentTarget)),
            );
            body.classList.toggle("picked", on);
            for (const span of spans)
              if (typeof span !== "string")
                span.classList.toggle("out", on && span.dataset.topic !== String(topic));
          },
        },
        chip(topic),
        h("span", {}, topicName(topic)),
        h("span.quiet", {}, String(n)),
      ),
    );
  return h(
    "div",
    {},
    buttons.length
      ? h("div.legend", { role: "group", "aria-label": "Show the words of one topic" }, buttons)
      : null,
    body,
  );
}
