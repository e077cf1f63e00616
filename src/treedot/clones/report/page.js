"use strict";

const PAGE = 200; // groups that are listed at a time
const FOLDERS = 1000; // folders to suggest
const EDITORS = {
  "VS Code": (path, line) => `vscode://file${path}:${line}`,
  VSCodium: (path, line) => `vscodium://file${path}:${line}`,
  Cursor: (path, line) => `cursor://file${path}:${line}`,
  Zed: (path, line) => `zed://file${path}:${line}`,
  "IntelliJ IDEA": (path, line) => `idea://open?file=${path}&line=${line}`,
  PyCharm: (path, line) => `pycharm://open?file=${path}&line=${line}`,
};

const { groups, texts, root } = JSON.parse(document.getElementById("data").textContent);
const list = document.getElementById("groups");
const more = document.getElementById("more");
const bar = document.querySelector(".bar");
const controls = bar.elements;

for (const group of groups) for (const member of group.members) member.lines = texts[member.text];

function section(group) {
  const made = element(
    "details",
    { class: "group", id: `group-${group.rank}` },
    element(
      "summary",
      {},
      element("span", { class: "title" }, `${group.rank}. ${group.title}`),
      element("span", { class: "facts" }, group.facts + (group.tests ? ", in tests" : "")),
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

function mark(member) {
  return member.new ? " (new)" : "";
}

function places(group) {
  const shown = group.members.slice(0, 3).map((member) => member.place + mark(member));
  const more = group.members.length - shown.length;
  return shown.join("  ·  ") + (more ? `  ·  and ${more} more` : "");
}

function body(group) {
  const made = element("div", { class: "body" });
  const chosen = [0, group.other];
  const compared = element("div", { class: "wide" });
  const draw = () => {
    const [a, b] = chosen.map((k) => group.members[k]);
    compared.replaceChildren(a.lines && b.lines ? comparison(a, b, [head(a), head(b)]) : withoutSources(group));
  };
  if (group.members.length > 2 && group.members[0].lines) {
    const choices = chosen.map((_, side) => choice(group, chosen, side, draw));
    made.append(element("div", { class: "controls" }, ...choices));
  }
  draw();
  made.append(compared);
  if (group.also.length) made.append(element("ul", {}, ...group.also.map((also) => alsoLike(group, also))));
  return made;
}

function head(member) {
  return [element("b", {}, member.name), " ", place(member), mark(member)];
}

function withoutSources(group) {
  const items = group.members.map((member) => element("li", {}, ...head(member)));
  return element("ul", {}, ...items);
}

function alsoLike(group, also) {
  const words = [place(group.members[also.of]), " is also like ", place(also), ` ${also.name} (${also.similarity})`];
  return element("li", {}, ...words);
}

function choice(group, chosen, side, draw) {
  const select = element("select", {});
  group.members.forEach((member, k) => select.append(new Option(`${member.place} ${member.name}${mark(member)}`, k)));
  select.value = chosen[side];
  select.addEventListener("change", () => {
    chosen[side] = Number(select.value);
    draw();
  });
  return element("label", { class: "grow" }, side ? "Right " : "Left ", select);
}

// Return the place of a member: a link, if an editor is chosen.
function place(member) {
  const made = element("a", { class: "place" }, member.place);
  made.member = member;
  point(made);
  return made;
}

function point(link) {
  const { file, start } = link.member;
  const name = controls.editor?.value;
  if (!name) return link.removeAttribute("href");
  const full = /^(\/|[A-Za-z]:)/.test(file) ? file : `${controls.root.value.replace(/\/+$/, "")}/${file}`;
  const path = encodeURI(full.startsWith("/") ? full : `/${full}`).replace(/[?#&]/g, encodeURIComponent);
  link.href = EDITORS[name](path, start);
}

// What a reader chose is kept in the browser, unless it keeps nothing for files.
function kept(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function chooseEditor() {
  if (!controls.editor) return;
  const rootKey = `treedot root ${root}`;
  for (const name of Object.keys(EDITORS)) controls.editor.append(new Option(name, name));
  const before = kept("treedot editor");
  controls.editor.value = before === "" || before in EDITORS ? before : "VS Code";
  controls.root.value = kept(rootKey) || root;
  for (const control of [controls.editor, controls.root]) {
    control.addEventListener("input", () => {
      kept("treedot editor", controls.editor.value);
      kept(rootKey, controls.root.value);
      document.querySelectorAll("a.place").forEach(point);
    });
  }
}

function searched(members) {
  return members.map((member) => `${member.place} ${member.name}${mark(member)}`).join("\n").toLowerCase();
}

const entries = groups.map((group) => ({
  group,
  copies: group.members.length,
  file: group.members[0].place,
  text: searched(group.members),
  also: searched(group.also),
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
let current = null; // the group that was opened last by a key

function wordsOf(name) {
  return controls[name].value.toLowerCase().split(/\s+/).filter(Boolean);
}

// Return whether a file is in a folder: its name begins so, or, for "folder/*", it is directly inside.
function isIn(folder, file) {
  const start = folder.replace(/(^|\/)\*$/, "$1");
  return file.startsWith(start) && (start === folder || !file.slice(start.length).includes("/"));
}

// Return a check of groups: of folders joined by " + ", each has a member of its own.
function inFolders() {
  const wanted = controls.folder.value.split(" + ").map((folder) => folder.trim()).filter(Boolean);
  const needed = (folder) => wanted.filter((other) => other === folder).length;
  return ({ members }) =>
    wanted.every((folder) => members.filter(({ file }) => isIn(folder, file)).length >= needed(folder));
}

function update() {
  const [wanted, unwanted, isInFolders] = [wordsOf("text"), wordsOf("not"), inFolders()];
  const [band, language] = [controls.band.value, controls.language.value];
  const [score, order] = [Number(controls.score.value), ORDERS[controls.order.value]];
  found = entries.filter(
    ({ group, text, also }) =>
      (!controls.kind.value || group.kind === controls.kind.value) &&
      (!controls.tests.value || group.tests === (controls.tests.value === "yes")) &&
      (!band || group.band === band) &&
      (!language || group.language === language) &&
      group.score >= score &&
      wanted.every((word) => text.includes(word) || also.includes(word)) &&
      !unwanted.some((word) => text.includes(word)) &&
      isInFolders(group)
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
  if (place >= 0) openAt(place);
}

function openAt(place) {
  if (place >= list.childElementCount) show(place + PAGE);
  const { section } = found[place];
  current = section;
  section.open = true;
  section.querySelector("summary").focus({ preventScroll: true });
  section.scrollIntoView();
}

// Open the group after or before the one with the focus, or else the one that was opened last, or the first one
// below the bar; close the one left.
function step(by) {
  const here = document.activeElement.closest(".group") ?? (current?.isConnected ? current : null);
  const shown = [...list.children];
  let place = shown.indexOf(here) + by;
  if (!here) {
    const below = shown.findIndex((each) => each.getBoundingClientRect().top >= bar.getBoundingClientRect().bottom - 1);
    place = by > 0 ? below : below - 1;
  }
  if (place < 0 || place >= found.length) return;
  if (here) here.open = false;
  openAt(place);
}

const KEYS = { j: () => step(1), n: () => step(1), k: () => step(-1), p: () => step(-1), "/": () => controls.text.focus() };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.("input, select, textarea");
  if (typing && event.key === "Escape") typing.blur();
  if (typing || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

// What is clicked above the list, such as a file, becomes a filter.
addEventListener("click", ({ target }) => {
  const chosen = target.closest?.("[data-filter]");
  if (!chosen) return;
  controls[chosen.dataset.filter].value = chosen.dataset.value;
  update();
  bar.scrollIntoView();
});

function suggest() {
  const [bands, languages] = ["band", "language"].map((key) => [...new Set(groups.map((group) => group[key]))]);
  for (const band of bands) controls.band.append(new Option(band, band));
  for (const language of languages.sort()) controls.language.append(new Option(language, language));
  controls.language.parentElement.hidden = languages.length < 2;
  controls.kind.parentElement.hidden = groups.every(({ kind }) => kind === groups[0].kind);
  controls.tests.parentElement.hidden = groups.every(({ tests }) => tests === groups[0].tests);
  const folders = new Set();
  for (const { members } of groups) {
    for (const { file } of members) {
      for (let end = file.lastIndexOf("/"); end > 0; end = file.lastIndexOf("/", end - 1)) {
        if (folders.has(file.slice(0, end + 1))) break;
        folders.add(file.slice(0, end + 1));
      }
    }
  }
  const options = [...folders].sort().slice(0, FOLDERS).map((folder) => element("option", { value: folder }));
  document.getElementById("folders").append(...options);
}

suggest();
chooseEditor();
controls.next.addEventListener("click", () => step(1));
controls.previous.addEventListener("click", () => step(-1));
bar.addEventListener("input", update);
bar.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", () => show(list.childElementCount + PAGE));
addEventListener("hashchange", openNamed);
bar.querySelector("details").open = innerWidth > 1000;
// Groups are scrolled to below the bar.
new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`)).observe(bar);
update();
openNamed();
