// Charts in SVG, drawn to the width they have and again when it changes.

// An element that holds draw(width) -> svg.
function chart(draw) {
  const holder = h("div.holder");
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(holder.clientWidth);
    if (width < 40 || width === drawn) return;
    drawn = width;
    holder.replaceChildren(draw(width));
  };
  new ResizeObserver(redraw).observe(holder);
  holder.redraw = () => {
    drawn = 0;
    redraw();
  };
  return holder;
}

// attributes: class for an image with a name, or a group of links with a name
function canvas(width, height, label, interactive, ...children) {
  return s("svg.chart", { width, height, viewBox: `0 0 ${width} ${height}`, role: interactive ? "group" : "img", "aria-label": label }, ...children);
}

// A text cut to a width; `size` is the height of the font.
function cutText(text, width, size = 14) {
  const most = Math.max(3, Math.floor(width / (0.54 * size)));
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}

// Rows of bars: [{label, href, value, shown, behind, classes, title}]; `behind` is a paler bar behind it.
function bars(width, rows, { label, labelWidth = Math.min(190, width * 0.36), most } = {}) {
  const [line, gap, end] = [26, 7, 62];
  const room = Math.max(20, width - labelWidth - end);
  const top = most ?? Math.max(...rows.map(({ value, behind }) => Math.max(value, behind ?? 0)), 1e-12);
  const drawn = rows.map((row, i) => {
    const y = i * line;
    const size = (value) => Math.max(value > 0 ? 1.5 : 0, (room * value) / top);
    const name = s("text.label", { x: labelWidth - 10, y: y + 17, "text-anchor": "end" }, cutText(row.label, labelWidth - 10));
    const inside = [
      s("title", {}, row.title ?? `${row.label}: ${row.shown}`),
      name,
      row.behind !== undefined && s("rect.behind", { x: labelWidth, y: y + gap / 2, width: size(row.behind), height: line - gap, rx: 2 }),
      s("rect.bar", { x: labelWidth, y: y + gap / 2, width: size(row.value), height: line - gap, rx: 2, classes: row.classes ?? "" }),
      s("text.value", { x: labelWidth + size(Math.max(row.value, row.behind ?? 0)) + 6, y: y + 17 }, row.shown),
    ];
    return row.href
      ? s("a", { href: row.href, "aria-label": `${row.label}, ${row.shown}` }, ...inside)
      : s("g", {}, ...inside);
  });
  return canvas(width, rows.length * line, label, rows.some(({ href }) => href), ...drawn);
}

// The map of topics: a circle for each, its area the topic's weight, its place by the distances.
function topicMap(width, chosen = -1) {
  const height = Math.round(Math.min(width * 0.86, 540));
  const largestWeight = Math.max(...model.weights);
  const biggest = Math.max(15, Math.min(width, height) * 0.085);
  const radius = (topic) => Math.max(9, biggest * Math.sqrt(model.weights[topic] / largestWeight));
  const margin = biggest + 6;
  const axis = (i) => Array.from({ length: model.K }, (_, topic) => model.places[2 * topic + i]);
  const place = [0, 1].map((i) => {
    const values = axis(i);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = (i ? height : width) - 2 * margin;
    return (topic) => margin + (high > low ? ((values[topic] - low) / (high - low)) * room : room / 2);
  });
  const links = model.order.map((topic) => {
    const [x, y, r] = [place[0](topic), place[1](topic), radius(topic)];
    return s("a", { href: topicAddress(topic), "aria-label": topicTitle(topic), classes: topic === chosen ? "chosen" : "" },
      s("title", {}, `${topicTitle(topic)}\n${topWords(topic, 6).join(", ")}\n${percent(model.weights[topic])} of all words`),
      s("circle", { cx: x, cy: y, r, classes: colourOf(topic) }),
      s("text", { x, y: y + 4.5, "text-anchor": "middle" }, String(topic)));
  });
  return canvas(width, height, "Map of topics: near circles have similar words, large ones much weight", true, ...links);
}
