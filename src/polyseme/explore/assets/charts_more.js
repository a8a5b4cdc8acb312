// Lines over time or iterations, small lines, and a matrix of shades.

// Returns about `many` round numbers between two values.
function ticks(low, high, many = 4) {
  if (!(high > low)) return [low];
  const raw = (high - low) / many;
  const power = 10 ** Math.floor(Math.log10(raw));
  const far = (size) => Math.abs(Math.log(size / raw));
  const step = [1, 2, 5, 10].map((m) => m * power).sort((a, b) => far(a) - far(b))[0];
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(value);
  return found;
}

// Returns a function that formats ticks with as many decimals as they need.
function tickText(values) {
  const step = values.length > 1 ? values[1] - values[0] : 1;
  const decimals = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
  const format = new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return (value) => format.format(value);
}

// Lines: series [{values, classes, label, tag (at its end)}], all as long as xs (numbers) or names (texts below).
function lines(width, { series, xs, names, label, format, height = 280, zero = false, dots = false, errors, mark, xLabel }) {
  const [left, right, above, below] = [64, series.some(({ tag }) => tag) ? 38 : 18, 14, xLabel ? 46 : 32];
  const size = series[0].values.length;
  const along = xs ?? Array.from({ length: size }, (_, i) => i);
  const all = series.flatMap(({ values }) => values.flatMap((v, i) => (v === null ? [] : [v - (errors?.[i] ?? 0), v + (errors?.[i] ?? 0)])));
  const low = zero ? 0 : Math.min(...all);
  const high = Math.max(...all, low + 1e-9);
  const [first, last] = [along[0], along[size - 1]];
  const x = (value) => left + (last > first ? ((value - first) / (last - first)) * (width - left - right) : (width - left - right) / 2);
  const y = (value) => height - below - ((value - low) / (high - low)) * (height - above - below);
  const levels = ticks(low, high);
  const formatTick = format ?? tickText(levels);
  const marks = levels.map((value) => [
    s("line.grid", { x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    s("text.tick", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, formatTick(value)),
  ]);
  const every = Math.max(1, Math.ceil(size / Math.max(2, Math.floor((width - left) / 84))));
  const xMarks = names
    ? names.map((name, i) => (i % every === 0 ? [i, name] : null)).filter(Boolean)
    : ticks(first, last, Math.max(2, Math.floor(width / 140))).map((value) => [value, wholeNumber.format(value)]);
  const below_ = xMarks.map(([value, name]) => s("text.tick", { x: x(value), y: height - below + 20, "text-anchor": "middle" }, name));
  const drawn = series.map(({ values, classes = "", label: name }) => {
    const points = values.map((value, i) => (value === null ? null : [x(along[i]), y(value)])).filter(Boolean);
    const path = points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");
    const few = dots || points.length === 1;
    return s("g", { classes }, s("title", {}, name ?? label), s("path.line", { d: path, classes }),
      few && points.map(([cx, cy]) => s("circle.dot", { cx, cy, r: 3.5, classes })));
  });
  const ends = series.filter(({ tag }) => tag).map(({ values, tag, classes }) => ({ tag, classes, y: y(values.findLast((v) => v !== null) ?? low) })).sort((a, b) => a.y - b.y);
  for (let i = 1; i < ends.length; i++) ends[i].y = Math.max(ends[i].y, ends[i - 1].y + 14);
  const tags = ends.map((end) => s("text.tag-end", { x: width - right + 7, y: end.y + 4, classes: end.classes }, end.tag));
  const spans = (errors ?? []).map((error, i) =>
    s("line.error", { x1: x(along[i]), x2: x(along[i]), y1: y(series[0].values[i] - error), y2: y(series[0].values[i] + error) }));
  const chosen = mark === undefined || mark === null ? null : s("line.mark", { x1: x(mark), x2: x(mark), y1: above, y2: height - below });
  const under = xLabel && s("text.tick", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel);
  return canvas(width, height, label, false, ...marks.flat(), ...below_, under, chosen, ...spans, ...drawn, ...tags);
}

// A small line without axes.
function sparkline(values, classes, label) {
  const [width, height] = [120, 30];
  const top = Math.max(...values, 1e-12);
  const points = values.map((value, i) => [
    values.length > 1 ? 2 + (i / (values.length - 1)) * (width - 4) : width / 2, height - 3 - (value / top) * (height - 6),
  ]);
  const path = points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  return s("svg.spark", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    s("path.line", { d: path, classes }), points.length === 1 && s("circle.dot", { cx: points[0][0], cy: points[0][1], r: 3, classes }));
}

// A matrix of shades: values[row][column] from 0 to 1; rows [{label, href, classes}], columns [{label, href}].
function matrix(width, { rows, columns, values, label, describe }) {
  const most = Math.max(...values.flat(), 1e-12);
  const left = Math.min(220, width * 0.34);
  const longest = Math.max(...columns.map((column) => Math.min(column.label.length, 24)));
  const step = Math.max(14, Math.min(110, (width - left - 8) / columns.length));
  const upright = step < 9 * Math.min(longest, 8);
  const above = upright ? Math.min(170, 16 + longest * 7.2) : 30;
  const line = 22;
  const wide = Math.ceil(left + step * columns.length + 8);
  const heads = columns.map((column, j) => {
    const x = left + j * step + step / 2;
    const text = s("text.label", upright
      ? { transform: `translate(${x + 4} ${above - 8}) rotate(-90)` }
      : { x, y: above - 10, "text-anchor": "middle" }, cutText(column.label, upright ? above : step + 4));
    return s("a", { href: column.href, "aria-label": column.label }, s("title", {}, column.label), text);
  });
  const body = rows.map((row, i) => [
    s("a", { href: row.href, "aria-label": row.label },
      s("text.label", { x: left - 10, y: above + i * line + 15, "text-anchor": "end" }, cutText(row.label, left - 12))),
    ...values[i].map((value, j) =>
      s("rect.shade", { x: left + j * step + 1, y: above + i * line + 1, width: step - 2, height: line - 2, rx: 2, classes: row.classes ?? "", "fill-opacity": (0.03 + 0.97 * Math.sqrt(value / most)).toFixed(3), data: { i, j } })),
  ]);
  const tell = ({ target }) => {
    const { i, j } = target.dataset;
    if (i !== undefined && !target.firstChild) target.append(s("title", {}, describe(i, j, values[i][j])));
  };
  const drawn = canvas(wide, above + rows.length * line + 4, label, true, ...heads, ...body.flat());
  drawn.addEventListener("pointerover", tell); // creating thousands of titles at once would be slow
  return drawn;
}
