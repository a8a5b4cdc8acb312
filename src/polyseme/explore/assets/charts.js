// Charts in SVG. They are drawn again when their width changes.

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

// An SVG element with a label for screen readers: an image or, if it is interactive, a group of links.
function canvas(width, height, label, interactive, ...children) {
  return s("svg.chart", { width, height, viewBox: `0 0 ${width} ${height}`, role: interactive ? "group" : "img", "aria-label": label }, ...children);
}

// Cuts a text to a width; `size` is the height of the font.
function cutText(text, width, size = 14) {
  const most = Math.max(3, Math.floor(width / (0.6 * size)));
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}

// Rows of bars: [{label, href, value, shown, behind, classes, title}]; `behind` is the value of a paler bar behind it.
function bars(width, rows, { label, labelWidth = Math.min(190, width * 0.36), end = 62, most } = {}) {
  const [line, gap] = [26, 7];
  const barWidth = Math.max(20, width - labelWidth - end);
  const top = most ?? Math.max(...rows.map(({ value, behind }) => Math.max(value, behind ?? 0)), 1e-12);
  const drawn = rows.map((row, i) => {
    const y = i * line;
    const size = (value) => Math.max(value > 0 ? 1.5 : 0, (barWidth * value) / top);
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

// The map of topics: a circle for each topic. Its area is the weight of the topic, its position follows from the distances.
function topicMap(width, chosen = -1) {
  const height = Math.round(Math.min(width * 0.86, model.K < 12 ? 380 : 540));
  const largestWeight = Math.max(...model.weights);
  const biggest = Math.max(15, Math.min(width, height) * 0.085);
  const radius = (topic) => Math.max(9, biggest * Math.sqrt(model.weights[topic] / largestWeight));
  const margin = biggest + 6;
  const places = separate(placesWithin(width, height, margin), radius, width, height);
  const links = model.order.map((topic) => {
    const [[x, y], r] = [places[topic], radius(topic)];
    return s("a", { href: topicAddress(topic), "aria-label": topicTitle(topic), classes: topic === chosen ? "chosen" : "" },
      s("title", {}, `${topicTitle(topic)}\n${topWords(topic, 6).join(", ")}\n${percent(model.weights[topic])} of all words`),
      s("circle", { cx: x, cy: y, r, classes: colorOf(topic) }),
      s("text", { x, y: y + (r > 26 ? 1 : 4.5), "text-anchor": "middle" }, String(topic)),
      r > 26 && s("text.inside", { x, y: y + 14, "text-anchor": "middle" }, cutText(topicName(topic).split(", ")[0], 1.7 * r, 10.5)));
  });
  return canvas(width, height, "Map of topics: circles near each other have similar words, larger circles have more weight", true, ...links);
}

// Returns the positions of the topics in a frame, with one scale for both directions.
function placesWithin(width, height, margin) {
  const axes = [0, 1].map((i) => Array.from({ length: model.K }, (_, topic) => model.places[2 * topic + i]));
  const spans = axes.map((values) => [Math.min(...values), Math.max(...values)]);
  const sizes = [width - 2 * margin, height - 2 * margin];
  const scale = Math.min(...spans.map(([low, high], i) => (high > low ? sizes[i] / (high - low) : Infinity)));
  return Array.from({ length: model.K }, (_, topic) => spans.map(([low, high], i) =>
    margin + sizes[i] / 2 + (Number.isFinite(scale) ? (axes[i][topic] - (low + high) / 2) * scale : 0)));
}

// Moves overlapping circles away from each other in small steps, within the frame.
function separate(places, radius, width, height) {
  for (let round = 0; round < 60; round++) {
    let moved = false;
    for (let a = 0; a < places.length; a++) {
      for (let b = 0; b < a; b++) {
        const [dx, dy] = [places[a][0] - places[b][0], places[a][1] - places[b][1]];
        const far = Math.hypot(dx, dy);
        const lack = 0.9 * (radius(a) + radius(b)) - far;
        if (lack <= 0.5) continue;
        const [ux, uy] = far > 1e-6 ? [dx / far, dy / far] : [Math.cos(a), Math.sin(a)];
        places[a] = [places[a][0] + (ux * lack) / 3, places[a][1] + (uy * lack) / 3];
        places[b] = [places[b][0] - (ux * lack) / 3, places[b][1] - (uy * lack) / 3];
        moved = true;
      }
    }
    places.forEach(([x, y], topic) => {
      const r = radius(topic) + 1;
      places[topic] = [Math.min(width - r, Math.max(r, x)), Math.min(height - r, Math.max(r, y))];
    });
    if (!moved) break;
  }
  return places;
}
