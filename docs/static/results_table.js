// The results table: rows for all claims, filters, and links. What is filtered and which row is open stands in the
// address behind #, as #CLAIM or as #words=...&study=...&claim=CLAIM, so that it can be sent.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("claims-table");
  if (!place || !window.RESULTS) return;
  const { claims, withdrawn, sources, meanings } = window.RESULTS;
  const gone = withdrawn.map((each) => ({ ...each, gone: true, study: "", tier: "", source: "", verdict: each.history[each.history.length - 1].event }));
  const all = [...claims, ...gone];
  const FACETS = { study: "study", source: "source", verdict: "verdict", tier: "tier" };

  // --- rows ---
  const rows = all.map((claim) => {
    const parts = claim.gone
      ? [claim.id, claim.verdict, ...claim.history.map((event) => event.reason || "")]
      : [claim.id, claim.says, claim.study, claim.in_words.place, claim.paper, claim.fact, claim.remark, claim.verdict, claim.control, claim.runs, claim.command];
    return { claim, element: rowOf(claim), words: parts.join(" ").toLowerCase() };
  });
  const byName = new Map(rows.map((row) => [row.claim.id, row]));

  // --- filters ---
  const words = made("input", { type: "search", id: "results-words", placeholder: "Words: two layers, LLC", "aria-label": "Words in a claim", autocomplete: "off", spellcheck: "false" });
  const selects = {};
  for (const [facet, name] of Object.entries(FACETS)) {
    const known = facet === "source" ? Object.keys(sources) : facet === "verdict" ? [...Object.keys(meanings), "withdrawn", "renamed"] : [];
    const there = new Set(all.map((claim) => claim[facet]).filter(Boolean));
    const values = [...new Set([...known, ...there])].filter((value) => there.has(value));
    const options = values.map((value) => made("option", { value }));
    selects[facet] = made("select", { "aria-label": capital(name) }, made("option", { value: "" }, `any ${name}`), ...options);
  }
  const nameOf = (facet, value) => (facet === "source" ? sources[value] : facet === "tier" ? `${value} results` : value);
  const count = made("output", { "aria-live": "polite", class: "count" });
  const clear = made("button", { type: "button", class: "clear" }, "Clear");
  const said = made("p", { role: "status", class: "said", hidden: "" });
  const bar = made("div", { class: "filters", role: "search" }, words, ...Object.values(selects), count, clear);
  const head = made("div", { class: "head", "aria-hidden": "true" }, ...["Claim", "Accepted range, seeds, control", "Measured", "Verdict"].map((name) => made("span", {}, name)));
  const nothing = made("p", { class: "nothing", hidden: "" }, "No claim has all of these.");
  const list = made("div", { class: "rows" }, ...rows.map((row) => row.element));
  place.replaceChildren(legendOf(byName), bar, said, head, list, nothing);

  const state = () => {
    const chosen = { words: words.value.trim() };
    for (const facet of Object.keys(FACETS)) chosen[facet] = selects[facet].value;
    return chosen;
  };

  function filter() {
    const chosen = state();
    const wanted = chosen.words.toLowerCase().split(/\s+/).filter(Boolean);
    const facets = Object.keys(FACETS);
    const counts = Object.fromEntries(facets.map((facet) => [facet, new Map()]));
    let shown = 0;
    for (const { claim, element, words: has } of rows) {
      const misses = facets.filter((facet) => chosen[facet] && claim[facet] !== chosen[facet]);
      const named = wanted.every((word) => has.includes(word));
      const visible = named && !misses.length;
      if (element.hidden === visible) element.hidden = !visible;
      shown += visible;
      if (!named || misses.length > 1) continue;
      for (const facet of misses.length ? misses : facets) counts[facet].set(claim[facet], (counts[facet].get(claim[facet]) || 0) + 1);
    }
    for (const facet of facets) {
      for (const option of selects[facet].options) {
        if (!option.value) continue;
        const words = `${nameOf(facet, option.value)} (${counts[facet].get(option.value) || 0})`;
        if (option.text !== words) option.text = words;
      }
    }
    count.textContent = `${shown} of ${all.length}`;
    clear.hidden = !wanted.length && !facets.some((facet) => chosen[facet]);
    nothing.hidden = shown > 0;
  }

  // --- the address ---
  let opened = "";
  let later = 0;

  function address() {
    const chosen = Object.entries(state()).filter(([, value]) => value);
    if (!chosen.length) return opened ? `#${opened}` : "";
    return `#${new URLSearchParams([...chosen, ...(opened ? [["claim", opened]] : [])])}`;
  }

  function remember() {
    clearTimeout(later);
    later = setTimeout(() => history.replaceState(null, "", address() || location.pathname + location.search), 200);
  }

  function complain(sentence) {
    said.hidden = !sentence;
    said.textContent = sentence;
  }

  /**
   * Shows what an address names; what it cannot show, as a link of an earlier version may, is a sentence. A place of the
   * page, such as that behind the navigation, leaves the filters.
   */
  function follow(hash) {
    let text = hash.slice(1);
    try { text = decodeURIComponent(text); } catch { /* a broken escape is no name */ }
    if (text && !byName.has(text) && document.getElementById(text)) return filter();
    const asked = text.includes("=") ? new URLSearchParams(hash.slice(1)) : new URLSearchParams(text ? { claim: text } : {});
    const sentences = [];
    words.value = asked.get("words") || "";
    for (const [facet, select] of Object.entries(selects)) {
      const value = asked.get(facet) || "";
      select.value = value;
      if (select.value !== value) {
        select.value = "";
        sentences.push(`The link asks for the ${FACETS[facet]} \u201c${value}\u201d, which no claim has.`);
      }
    }
    filter();
    const name = asked.get("claim") || "";
    const row = byName.get(name);
    if (name && !row) sentences.push(`The link names the claim \u201c${name}\u201d, which is not in this table. Perhaps the words of the search find it.`);
    complain(sentences.join(" "));
    if (!row) return;
    if (row.element.hidden) {
      words.value = "";
      for (const select of Object.values(selects)) select.value = "";
      filter();
    }
    opened = name;
    row.element.open = true;
    for (const other of list.querySelectorAll(".claim.target")) other.classList.remove("target");
    row.element.classList.add("target");
    row.element.firstElementChild.focus({ preventScroll: true });
    row.element.scrollIntoView({ block: "start", behavior: "instant" });
    // rows above are laid out only now, and may move it
    requestAnimationFrame(() => row.element.scrollIntoView({ block: "start", behavior: "instant" }));
  }

  words.addEventListener("input", () => { filter(); complain(""); remember(); });
  for (const select of Object.values(selects)) select.addEventListener("change", () => { filter(); complain(""); remember(); });
  clear.addEventListener("click", () => {
    words.value = "";
    for (const select of Object.values(selects)) select.value = "";
    filter();
    complain("");
    remember();
    words.focus();
  });
  list.addEventListener("toggle", (event) => {
    const row = event.target;
    if (row.open) opened = row.id;
    else if (opened === row.id) opened = "";
    else return;
    remember();
  }, true);
  // the address itself may be the last state's again by now, for it is written a moment after each change
  window.addEventListener("hashchange", (event) => follow(new URL(event.newURL).hash));

  // --- keys: arrows go from row to row, Escape closes a row or empties the words ---
  const visible = () => [...list.children].filter((row) => !row.hidden);
  place.addEventListener("keydown", (event) => {
    const row = event.target.closest(".claim");
    const on = event.target.tagName;
    if (event.key === "Escape" && row && row.open) {
      row.open = false;
      row.firstElementChild.focus();
    } else if (event.key === "Escape" && event.target === words && words.value) {
      words.value = "";
      filter();
      remember();
    } else if (event.key === "ArrowDown" && event.target === words) {
      visible()[0]?.firstElementChild.focus();
    } else if (on === "SUMMARY" && ["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) {
      const shown = visible(), here = shown.indexOf(row);
      const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: shown.length - 1 }[event.key];
      (shown[to] ? shown[to].firstElementChild : event.key === "ArrowUp" ? words : event.target).focus();
    } else return;
    event.preventDefault();
  });

  follow(location.hash);
});

/** A claim as an example of how a row is read. */
function legendOf(byName) {
  const example = byName.get("one_layer_loss") || [...byName.values()].find((row) => row.claim.n);
  if (!example) return "";
  const { claim } = example;
  const key = (part, name, words) => made("li", {}, part, made("span", {}, made("b", {}, name), ` ${words}`));
  const sample = (...parts) => drawn("svg", { viewBox: "0 0 34 18", width: 34, height: 18, "aria-hidden": "true" }, ...parts);
  const list = made("ul", { class: "keys" },
    key(sample(drawn("rect", { class: "accepted", x: 2, y: 1, width: 30, height: 16, rx: 2 })), "Band:", "the accepted range, committed before the seeds were measured."),
    key(sample(...[[7, 11], [14, 6], [20, 11], [27, 8]].map(([cx, cy]) => drawn("circle", { class: "seed", cx, cy, r: 2.5 }))), "Dots:", "trained models, one for each seed."),
    key(sample(drawn("line", { class: "interval", x1: 4, x2: 30, y1: 9, y2: 9 }), drawn("circle", { class: "mean", cx: 17, cy: 9, r: 3.4 })), "Line:", "their mean with its interval. If it lies inside the band, the claim holds."),
    key(sample(drawn("path", { class: "control", d: "M13.4 5.4l7.2 7.2m0 -7.2l-7.2 7.2" })), "Cross:", "the control, something else that might pass. An arrow says that it is further away."));
  return made("div", { class: "legend" }, list);
}
