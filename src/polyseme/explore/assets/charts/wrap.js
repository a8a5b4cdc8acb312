// Texts in several lines.

/**
 * Breaks a text into lines of at most some characters, between words and after dots, slashes and
 * hyphens; longer words are broken anywhere.
 *
 * @param {string} text
 * @param {number} most
 * @returns {string[]}
 */
export function wrapped(text, most) {
  const lines = [""];
  const pieces = text.split(/(?<=[\s./_-])/).flatMap((piece) => {
    const letters = Array.from(piece);
    const parts = [];
    while (letters.length) parts.push(letters.splice(0, most).join(""));
    return parts;
  });
  for (const piece of pieces) {
    const line = lines[lines.length - 1];
    if (!line || (line + piece).trimEnd().length <= most) lines[lines.length - 1] = line + piece;
    else lines.push(piece);
  }
  return lines.map((line) => line.trim());
}
