"use strict";

// Two sources side by side: which lines stand beside each other, and which words differ.

const MIN_LIKENESS = 0.4; // of two lines that are put side by side

// Return the pairs [i, j], ascending in both, with the largest sum of weights: dynamic programming.
function aligned(n, m, weight) {
  const best = Array.from({ length: n + 1 }, () => new Float64Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      const apart = Math.max(best[i + 1][j], best[i][j + 1]);
      const here = weight(i, j);
      best[i][j] = here > 0 ? Math.max(apart, here + best[i + 1][j + 1]) : apart;
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (best[i][j] === best[i + 1][j]) i++;
    else if (best[i][j] === best[i][j + 1]) j++;
    else pairs.push([i++, j++]);
  }
  return pairs;
}

function words(line) {
  return line.match(/[\p{L}\p{N}_]+|\s+|./gsu) || [];
}

// Return the rows of two texts side by side: [i, j], with null where one of them has no line.
function rows(a, b) {
  const [x, y] = [a, b].map((lines) => lines.map((line) => words(line).filter((word) => word.trim()).sort()));
  const weight = (i, j) => {
    if (a[i] === b[j]) return x[i].length ? 1 : 0.01; // empty lines align with what stands around them
    const share = likeness(x[i], y[j]);
    return share >= MIN_LIKENESS ? 0.9 * share ** 3 : 0; // so that two weak pairs do not part equal lines
  };
  const made = [];
  let [i, j] = [0, 0];
  const apart = (endI, endJ) => {
    while (i < endI) made.push([i++, null]);
    while (j < endJ) made.push([null, j++]);
  };
  for (const pair of aligned(a.length, b.length, weight)) {
    apart(...pair);
    made.push([i++, j++]);
  }
  apart(a.length, b.length);
  return made;
}

// Return the share of words that two lines have in common, given their sorted words.
function likeness(a, b) {
  let common = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) common++, i++, j++;
    else if (a[i] < b[j]) i++;
    else j++;
  }
  return a.length + b.length ? (2 * common) / (a.length + b.length) : 0;
}

// Return both lines as nodes, with the words that only one of them has marked.
function marked(a, b) {
  const [x, y] = [words(a), words(b)];
  const pairs = aligned(x.length, y.length, (i, j) => (x[i] !== y[j] ? 0 : x[i].trim() ? 1 : 0.1));
  return [side(x, new Set(pairs.map(([i]) => i))), side(y, new Set(pairs.map(([, j]) => j)))];
}

function side(parts, common) {
  const nodes = [];
  for (let i = 0; i < parts.length; ) {
    let end = i + 1;
    while (end < parts.length && common.has(end) === common.has(i)) end++;
    const text = parts.slice(i, end).join("");
    nodes.push(common.has(i) ? text : element("mark", {}, text));
    i = end;
  }
  return nodes;
}

function element(kind, attributes, ...children) {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Return the table of two members; their heads are lists of nodes.
function comparison(a, b, heads) {
  const head = heads.map((nodes) => element("th", { colspan: 2, scope: "col" }, ...nodes));
  const lines = element("tbody", {});
  for (const [i, j] of rows(a.lines, b.lines)) lines.append(row(a, i, b, j));
  const columns = ["number", "", "number", ""].map((kind) => element("col", { class: kind }));
  return element("table", { class: "code" }, ...columns, element("thead", {}, element("tr", {}, ...head)), lines);
}

function row(a, i, b, j) {
  const same = i !== null && j !== null && a.lines[i] === b.lines[j];
  let texts = [[a.lines[i] ?? ""], [b.lines[j] ?? ""]];
  if (i !== null && j !== null && !same) texts = marked(a.lines[i], b.lines[j]);
  const cells = [
    [a, i, texts[0]],
    [b, j, texts[1]],
  ].flatMap(([member, line, text]) => {
    const kind = line === null ? "none" : (i === null) !== (j === null) ? "only" : same ? "same" : "changed";
    const number = line === null ? "" : String(member.start + line);
    return [element("td", { class: `number ${kind}` }, number), element("td", { class: kind }, ...text)];
  });
  return element("tr", {}, ...cells);
}
