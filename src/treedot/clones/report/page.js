"use strict";

const MIN_LIKENESS = 0.4; // of two lines that are put side by side
const PAGE = 200; // groups that are listed at a time

const groups = JSON.parse(document.getElementById("data").textContent);
const list = document.getElementById("groups");
const more = document.getElementById("more");
const controls = document.querySelector(".controls").elements;

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

function section(group) {
  const made = element(
    "details",
    { class: "group", id: `group-${group.rank}` },
    element(
      "summary",
      {},
      element("span", { class: "title" }, `${group.rank}. ${group.title}`),
      element("span", { class: "facts" }, group.facts),
      group.difference ? element("span", { class: "facts" }, group.difference) : "",
      element("span", { class: "places" }, places(group))
    )
  );
  made.addEventListener("toggle", () => made.childElementCount === 1 && made.append(body(group)));
  if (group.open) {
    made.append(body(group));
    made.open = true;
  }
  return made;
}

function places(group) {
  const shown = group.members.slice(0, 3).map((member) => member.place);
  const more = group.members.length - shown.length;
  return shown.join("  ·  ") + (more ? `  ·  and ${more} more` : "");
}

function body(group) {
  const made = element("div", { class: "body" });
  const chosen = [0, group.other];
  const compared = element("div", { class: "wide" });
  const draw = () => compared.replaceChildren(comparison(...chosen.map((k) => group.members[k])));
  if (group.members.length > 2) {
    const choices = chosen.map((_, side) => choice(group, chosen, side, draw));
    made.append(element("div", { class: "controls" }, ...choices));
  }
  draw();
  made.append(compared);
  return made;
}

function choice(group, chosen, side, draw) {
  const select = element("select", {});
  group.members.forEach((member, k) => select.append(new Option(`${member.place} ${member.name}`, k)));
  select.value = chosen[side];
  select.addEventListener("change", () => {
    chosen[side] = Number(select.value);
    draw();
  });
  return element("label", { class: "grow" }, side ? "Right " : "Left ", select);
}

function comparison(a, b) {
  const head = [a, b].map((member) =>
    element("th", { colspan: 2, scope: "col" }, element("b", {}, member.name), ` ${member.place}`)
  );
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

const entries = groups.map((group) => ({
  group,
  copies: group.members.length,
  file: group.members[0].place,
  text: group.members.map((member) => `${member.place} ${member.name}`).join("\n").toLowerCase(),
}));

const ORDERS = {
  rank: (a, b) => a.group.rank - b.group.rank,
  score: (a, b) => b.group.score - a.group.score,
  similarity: (a, b) => b.group.similarity - a.group.similarity,
  nodes: (a, b) => b.group.nodes - a.group.nodes,
  copies: (a, b) => b.copies - a.copies,
  file: (a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0),
};

let found = entries;

function update() {
  const wanted = controls.text.value.toLowerCase().split(/\s+/);
  const [band, score, order] = [controls.band.value, Number(controls.score.value), ORDERS[controls.order.value]];
  found = entries.filter(
    ({ group, text }) =>
      (!band || group.band === band) && group.score >= score && wanted.every((word) => text.includes(word))
  );
  found.sort((a, b) => order(a, b) || ORDERS.rank(a, b));
  controls.count.value = `${found.length} of ${entries.length}`;
  list.replaceChildren();
  show(PAGE);
}

// List as many of the groups that were found; one that was opened stays so.
function show(count) {
  for (const entry of found.slice(list.childElementCount, count)) {
    entry.section ??= section(entry.group);
    list.append(entry.section);
  }
  more.hidden = list.childElementCount === found.length;
}

function openNamed() {
  const place = found.findIndex(({ group }) => location.hash === `#group-${group.rank}`);
  if (place < 0) return;
  show(place + 1);
  found[place].section.open = true;
  found[place].section.scrollIntoView();
}

for (const band of new Set(groups.map((group) => group.band))) controls.band.append(new Option(band, band));
controls.text.form.addEventListener("input", update);
controls.text.form.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", () => show(list.childElementCount + PAGE));
addEventListener("hashchange", openNamed);
update();
openNamed();
