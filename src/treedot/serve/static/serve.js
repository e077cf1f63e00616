// Pages work without this script. It fetches a page again when its form changes, replaces the parts that
// depend on the form, and keeps the link of the page up to date.
"use strict";

const PAUSE = 250; // milliseconds after the last change
const LONGEST = 8000; // characters of a link; longer forms are posted
let running = new AbortController();
let waiting = 0;

function asked(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const fallback = form.querySelector(`[name="${name}"]`).dataset.default ?? "";
    if (value !== fallback) fields.append(name, value);
  }
  return fields;
}

async function refresh(form) {
  running.abort();
  running = new AbortController();
  const fields = asked(form);
  const link = `${form.getAttribute("action")}?${fields}`;
  const fits = link.length <= LONGEST;
  history.replaceState(null, "", fits ? link : form.getAttribute("action"));
  const state = form.querySelector(".state");
  busy(true);
  state.value = "Working …";
  try {
    const answer = await fetch(...request(link, running.signal));
    replace(await answer.text());
    state.value = fits ? "" : "Too long for a link.";
  } catch (error) {
    if (error.name === "AbortError") return;
    state.value = "The server does not answer.";
  }
  busy(false);
  loadAll();
}

function loadAll() {
  for (const part of document.querySelectorAll("[data-src]:not([data-later])")) load(part);
}

function busy(is) {
  for (const part of document.querySelectorAll("[data-part]")) part.setAttribute("aria-busy", is);
}

// Replace parts of the page by those of another one. A part with a link of its own, which takes longer, stays
// until that link has answered.
function replace(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-part]")) {
    const found = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!found) continue;
    if (part.dataset.src && found.dataset.src && !("later" in found.dataset)) part.dataset.src = found.dataset.src;
    else part.replaceWith(found);
  }
  prepare();
}

async function load(part) {
  const { signal } = running;
  part.setAttribute("aria-busy", true);
  try {
    const answer = await fetch(...request(part.dataset.src, signal));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.querySelector(`[data-part="${part.dataset.from ?? part.dataset.part}"]`);
    if (!signal.aborted && found) part.replaceChildren(...found.childNodes);
    prepare();
  } catch (error) {
    if (signal.aborted) return;
  }
  part.setAttribute("aria-busy", false);
}

// Return what fetch needs: long fields are posted.
function request(link, signal) {
  if (link.length <= LONGEST) return [link, { signal }];
  const [path, fields] = link.split("?", 2);
  return [path, { signal, method: "POST", body: new URLSearchParams(fields) }];
}

// Set what a style attribute would set, and show which nodes have no partner.
function prepare() {
  for (const picture of document.querySelectorAll("svg[data-width]"))
    picture.style.setProperty("--width", `${picture.dataset.width}px`);
  for (const tree of document.querySelectorAll("[data-tree]"))
    for (const kind of ["alone", "renamed"])
      for (const number of numbers(tree.dataset[kind])) nodes(tree, number).forEach((node) => node.classList.add(kind));
}

// Align two sources line by line, and mark the words that differ.
function align(sources) {
  const sides = [...sources.children].map((side) => {
    const text = side.querySelector("pre");
    return { lines: text.textContent.split("\n"), start: Number(text.dataset.start) };
  });
  sources.replaceWith(comparison(...sides, [...sources.querySelectorAll("h3")].map((title) => [title.textContent])));
}

function numbers(text) {
  return text ? text.split(" ") : [];
}

function nodes(tree, number) {
  return tree.querySelectorAll(`[data-node="${number}"]`);
}

function mark(scope, side, found) {
  const tree = scope.querySelector(`[data-tree="${side}"]`);
  if (tree) for (const number of found) nodes(tree, number).forEach((node) => node.classList.add("marked"));
}

function show(target) {
  for (const node of document.querySelectorAll(".marked")) node.classList.remove("marked");
  const box = target?.closest?.(".box") ?? document.querySelector(".box.pinned");
  if (box) {
    const scope = box.closest("[data-part], [data-src]");
    mark(scope, "a", numbers(box.dataset.inA));
    mark(scope, "b", numbers(box.dataset.inB));
    return;
  }
  const node = target?.closest?.("[data-node]");
  const tree = node?.closest("[data-tree]");
  if (!tree?.dataset.partners) return;
  const pair = tree.dataset.partners.split(",").find((text) => text.startsWith(`${node.dataset.node}:`));
  const scope = tree.closest("[data-part], [data-src]");
  mark(scope, tree.dataset.tree, [node.dataset.node]);
  if (pair) mark(scope, tree.dataset.tree === "a" ? "b" : "a", [pair.split(":")[1]]);
}

// The document listens, not each form: the head of the page loads this script before there is a form to edit.
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-live]");
  if (!form) return;
  const output = event.target.parentElement.querySelector("output");
  if (output) output.value = event.target.value;
  clearTimeout(waiting);
  waiting = setTimeout(() => refresh(form), PAUSE);
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-live]");
  if (!form) return;
  event.preventDefault();
  clearTimeout(waiting);
  refresh(form);
});
document.addEventListener("pointerover", (event) => show(event.target));
document.addEventListener("focusin", (event) => show(event.target));
document.addEventListener("click", (event) => {
  const later = event.target.closest("[data-load]");
  if (later) {
    event.preventDefault();
    load(later.closest("[data-src]"));
  }
  const box = event.target.closest(".box");
  for (const other of document.querySelectorAll(".box.pinned")) if (other !== box) other.classList.remove("pinned");
  if (box) box.classList.toggle("pinned");
});
document.addEventListener(
  "toggle",
  (event) => {
    for (const sources of event.target.querySelectorAll(":scope > [data-sources]")) align(sources);
    const part = event.target.open && event.target.querySelector(":scope > [data-src]:not([aria-busy])");
    if (part) load(part);
  },
  true
);
document.addEventListener("DOMContentLoaded", () => {
  prepare();
  loadAll();
});
