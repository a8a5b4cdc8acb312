// How the fit went: figures, the course of the likelihood, the choice of the number of topics.

function viewFit() {
  const facts = Object.entries({ model: model.model, topics: model.K, documents: model.n_documents, words: model.n_words, tokens: model.n_tokens, ...model.facts });
  const { history } = model;
  const xs = history.iteration;
  const course = (name, title, note, transform = (v) => v) => {
    const values = history[name]?.map((v) => (v === null ? null : transform(v)));
    const kept = values?.map((v, i) => [xs?.[i] ?? i, v]).filter(([, v]) => v !== null && Number.isFinite(v));
    if (!kept || kept.length < 2) return null;
    return card(title, chart((width) => lines(width, { series: [{ values: kept.map(([, v]) => v) }], xs: kept.map(([x]) => x), label: title, xLabel: "iteration" })), {
      note, save: { name: title, chart: true, rows: () => [["iteration", name], ...kept] } });
  };
  const curves = [
    course("log_likelihood", "Log-likelihood", "Mean log P(w|d) of a training token, in nats; higher is better."),
    course("bound", "Bound", "Lower bound of the log evidence, in nats; higher is better."),
    course("residual", "Residual", "What re-optimising could still gain at most, in nats per token (log scale, base 10).", (v) => (v > 0 ? Math.log10(v) : null)),
  ].filter(Boolean);
  const rows = model.selection;
  const choice = rows.length > 1 ? card("Number of topics", chart((width) => lines(width, {
    series: [{ values: rows.map(({ perplexity }) => perplexity) }], xs: rows.map(({ k }) => k), errors: rows.map(({ error }) => error ?? 0), dots: true, mark: model.chosen,
    label: "Held-out perplexity against the number of topics", xLabel: "topics",
  })), { note: `Held-out perplexity, lower is better; ${model.chosen ?? model.K} topics were chosen. ${model.selection_reason}`, save: { name: "number of topics", chart: true, rows: () => [["k", "perplexity", "error"], ...rows.map(({ k, perplexity, error }) => [k, perplexity, error])] } }) : null;
  return [
    h("div.title", {}, h("h1", {}, "How the fit went")),
    h("div.columns", {},
      card("Figures", h("dl.facts", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, figureOf(value))])), { save: { name: "figures", rows: () => [["figure", "value"], ...facts] } }),
      h("div.stack", {}, curves.length ? curves : card("Course", empty("This model kept no record of its iterations.")),
        choice ?? card("Number of topics", empty(`The number of topics, ${model.K}, was given; polyseme select compares several.`)))),
  ];
}
