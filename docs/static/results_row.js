// A claim as a row that opens: what it says, its drawing, its number and verdict; inside, where all of it comes from.
"use strict";

function made(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const ended = (words) => (/[.?!]$/.test(words) ? words : `${words}.`);
const seedsOf = (n) => (n === 1 ? "1 seed" : `${n} seeds`);

// what a verdict looks like: a sign that needs no colour, and a kind that has one
const LOOKS = {
  reproduced: ["\u2713", "holds"],
  "as predicted": ["\u2713", "holds"],
  contradicted: ["\u2717", "fails"],
  "no effect": ["=", "open"],
  "two kinds": ["\u2442", "open"],
  undecided: ["?", "open"],
  uninformative: ["~", "open"],
  provisional: ["\u2026", "open"],
  "not at the paper's scale": ["\u2026", "open"],
};
const looksOf = (verdict) => LOOKS[verdict] || ["\u2013", "none"];

// --- the row ---

function rowOf(claim) {
  const row = made("details", { class: "claim", id: claim.id });
  const inside = made("span", { class: "row" }, ...(claim.gone ? goneParts(claim) : partsOf(claim)));
  row.append(made("summary", {}, inside));
  row.addEventListener("toggle", () => {
    if (row.open && row.childElementCount === 1) row.append(bodyOf(claim, row.clientWidth));
  });
  return row;
}

function titleOf(claim, words) {
  const main = claim.tier === "main" ? [made("b", { class: "main" }, "main result"), " \u00b7 "] : [];
  return made("span", { class: "says" }, words, made("small", {}, ...main, claim.study ? `${claim.study} \u00b7 ` : "", made("span", { class: "name" }, claim.id)));
}

function verdictOf(claim, under) {
  const [sign, kind] = looksOf(claim.verdict);
  const mark = made("span", { class: "sign", "aria-hidden": "true" }, sign);
  return made("span", { class: `verdict ${kind}` }, made("span", {}, mark, " ", claim.verdict), under ? made("small", {}, under) : "");
}

function partsOf(claim) {
  const [mean, between] = claim.in_words.measured.split(" [");
  const missing = claim.values.filter((value) => value === null).length;
  const n = claim.n ? `${seedsOf(claim.n)}${missing ? `, ${missing} without a number` : ""}` : "";
  const measured = mean ? [mean, made("small", {}, between ? `[${between} ` : "", made("span", { class: "n" }, n))] : [made("span", { class: "not" }, "not measured")];
  const spoken = made("span", { class: "spoken" }, `; accepted: ${claim.in_words.accepted}; `);
  const under = claim.verdict === claim.reading_says ? "" : `numbers alone: ${claim.reading_says}`;
  return [
    titleOf(claim, claim.says),
    made("span", { class: "plot" }, smallPlot(claim)),
    made("span", { class: "measured" }, ...measured, spoken),
    verdictOf(claim, under),
  ];
}

function goneParts(claim) {
  const last = claim.history[claim.history.length - 1];
  const why = claim.verdict === "renamed" ? `is called ${last.says} today` : last.reason;
  const title = made("span", { class: "says" }, made("span", { class: "name" }, claim.id), made("small", {}, `${capital(claim.verdict)} on ${last.date}: ${why}`));
  return [title, made("span", { class: "plot" }), made("span", { class: "measured not" }, "no claim any more"), verdictOf(claim, "")];
}

// --- what a row opens to ---

function bodyOf(claim, width) {
  const list = made("dl");
  const tell = (name, ...parts) => {
    if (parts.some((part) => part)) list.append(made("dt", {}, name), made("dd", {}, ...parts));
  };
  if (claim.gone) {
    const links = claim.replaced_by.filter((name) => document.getElementById(name)).flatMap((name, i) => [i ? ", " : "", linkTo(name)]);
    tell(claim.verdict === "renamed" ? "Today's name" : "In its place", ...links);
    tell("History", historyOf(claim));
    return made("div", { class: "body" }, list, linkLine(claim));
  }
  const { runs, origins, pages, figures } = window.RESULTS;
  tell("Fact", claim.fact === claim.id ? "" : claim.fact);
  tell("Source", `${claim.in_words.place === "ours" ? "A claim of this laboratory" : capital(claim.in_words.place)}. Expected: ${short(claim.expected)}. The range comes from ${origins[claim.source]}.`);
  if (claim.no_effect) tell("No effect", `Values from ${claim.no_effect.map(short).join(" to ")} count as no effect.`);
  if (claim.earlier) {
    const before = `${rangeInWords(claim.earlier.low, claim.earlier.high)}${claim.earlier.verdict ? `; by it the claim is ${claim.earlier.verdict}` : ""}`;
    tell("Range before", `${before}. ${capital(ended(`it was revised because ${claim.earlier.because}`))}`);
  }
  tell("Control", capital(ended(claim.in_words.control)), claim.control_kind === "weak" ? " Most claims are compared with the same network before training; this is a weak test." : "");
  for (const [name, of] of [["Runs", claim.runs], ["Paired with", claim.paired]]) {
    if (of) tell(name, ...configOf(runs[`${claim.study}/${of}`], of));
  }
  if (!claim.runs) tell("Runs", "None: it is measured on sampled tasks, without training.");
  if (claim.device) tell("Measured", `${claim.date}, on ${claim.device}. ${claim.n > 1 ? `Seeds ${inRanges(claim.seeds)}` : `Seed ${claim.seeds[0]}`}.`);
  tell(claim.device ? "Measure again" : "Measure", commandOf(claim.command, "Copy the command that measures this claim"));
  tell("With your seeds", commandOf(claim.replicate, "Copy the command that replicates this claim"), made("p", {}, "Put in seeds that the study has not used. Nothing that is committed changes."));
  tell("History", historyOf(claim));
  for (const id of claim.shown_in.slice(0, 2)) {
    const { image, caption } = figures[id];
    tell("Figure", made("a", { href: pages[claim.study] }, made("img", { src: image, alt: caption, loading: "lazy" })), made("p", {}, caption));
  }
  const plot = made("div", { class: "large" }, largePlot(claim, width - 32));
  return made("div", { class: "body" }, ...verdictInWords(claim), plot, list, linkLine(claim, pages[claim.study]));
}

/** Sentences: what was measured, what was accepted, and what follows. */
function verdictInWords(claim) {
  const { meanings } = window.RESULTS;
  const { accepted, measured } = claim.in_words;
  const found = measured.match(/^(.*) \[(.*), (.*)\]$/);
  const level = Number((100 * claim.level).toFixed(1));
  const sentences = [];
  if (found) sentences.push(`Over ${seedsOf(claim.n)} the mean is ${found[1]}, with a ${level}\u00a0% interval of ${found[2]} to ${found[3]}.`);
  else if (measured) sentences.push(`Measured: ${measured}.`);
  else sentences.push("It has not been measured.");
  sentences.push(`Accepted, as committed beforehand: ${ended(accepted.split(" (was")[0])}`);
  const missing = claim.values.filter((value) => value === null).length;
  if (missing) sentences.push(`${missing} of ${seedsOf(claim.values.length)} ${missing === 1 ? "has" : "have"} no number: infinite, or a run that the claim leaves out.`);
  const paragraphs = [made("p", {}, sentences.join(" "))];
  const because = claim.because ? ` Here: ${claim.because}.` : "";
  paragraphs.push(made("p", {}, made("b", {}, `${capital(claim.verdict)}: `), `${meanings[claim.verdict]}.${because}`));
  if (claim.verdict !== claim.reading_says) {
    paragraphs.push(made("p", {}, "The numbers alone say ", made("b", {}, claim.reading_says), `: ${meanings[claim.reading_says]}.${claim.smaller ? ` Smaller here: ${ended(claim.smaller)}` : ""}`));
  }
  if (claim.planned !== null) paragraphs.push(made("p", {}, `Reading ${claim.planned}, on fresh seeds, is planned.`));
  if (claim.remark) paragraphs.push(made("p", { class: "remark" }, claim.remark));
  return paragraphs;
}

function rangeInWords(low, high) {
  if (high === null || high === undefined) return low > 1e-5 ? `at least ${short(low)}` : "above 0";
  return low === null || low === undefined || low === 0 ? `at most ${short(high)}` : `${short(low)} to ${short(high)}`;
}

/** Seeds in ascending order, neighbours as a range. */
function inRanges(seeds) {
  const parts = [];
  for (const seed of [...seeds].sort((a, b) => a - b)) {
    const last = parts[parts.length - 1];
    if (last && seed === last[1] + 1) last[1] = seed;
    else parts.push([seed, seed]);
  }
  return parts.map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from} to ${to}`)).join(", ");
}

function configOf(runs, name) {
  const words = (settings) => Object.entries(settings).map(([key, value]) => `${key} = ${Array.isArray(value) ? value.join(", ") || "none" : value}`);
  const settings = words(runs.settings), axes = words(runs.axes);
  const parts = [`${name}: model `, made("code", {}, runs.model)];
  if (settings.length) parts.push(" with ", ...settings.flatMap((each, i) => [i ? ", " : "", made("code", {}, each)]));
  if (axes.length) parts.push("; a run for each of ", ...axes.flatMap((each, i) => [i ? ", " : "", made("code", {}, each)]));
  return [...parts, `; seeds ${inRanges(runs.seeds)}. All other fields have `, made("a", { href: "reference/presets.html" }, "the model's defaults"), "."];
}

const EVENTS = {
  range: (event, first) => `${first ? "range committed" : "range revised"}: ${rangeInWords(event.low, event.high)}`,
  look: (event) => `${event.reading > 1 ? `reading ${event.reading}, ` : ""}read on ${seedsOf(event.n)}: ${event.says}`,
  planned: (event) => `reading ${event.reading} planned on ${event.n} fresh seeds${event.says ? `: ${event.says}` : ""}`,
  rerun: (event) => `the same ${seedsOf(event.n)} read again: ${event.says}`,
  rule: (event) => `judged by another rule: ${event.says || "see the reason"}`,
  measure: (event) => `measured in another way: ${event.says || "see the reason"}`,
  withdrawn: (event) => `withdrawn${event.says ? `, replaced by ${event.says.split(" ").join(", ")}` : ""}`,
  renamed: (event) => `renamed to ${event.says}`,
};

function historyOf(claim) {
  if (!claim.history.length) return "";
  let first = true;
  const items = claim.history.map((event) => {
    const words = EVENTS[event.event](event, first);
    first = first && event.event !== "range";
    return made("li", {}, made("time", {}, event.date), " ", words, event.reason ? made("span", { class: "reason" }, ` (${event.reason})`) : "");
  });
  return made("ol", { class: "history" }, ...items);
}

// --- copying ---

function commandOf(command, label) {
  return made("div", { class: "command" }, made("code", {}, command), copyButton(command, label, "Copy"));
}

function linkTo(name) {
  return made("a", { href: `#${name}` }, made("code", {}, name));
}

function linkLine(claim, page) {
  const link = `${location.href.split("#")[0]}#${claim.id}`;
  const parts = [copyButton(link, `Copy the link to ${claim.id}`, "Copy link to this row")];
  if (page) parts.unshift(made("a", { href: page }, `Page of results: ${window.RESULTS.titles[claim.study]}`), " ");
  return made("p", { class: "links" }, ...parts);
}

function copyButton(words, label, face) {
  const button = made("button", { type: "button", "aria-label": label }, face);
  button.addEventListener("click", async () => {
    button.textContent = (await copied(words, button)) ? "Copied" : "Selected: press Ctrl-C";
    setTimeout(() => { button.textContent = face; }, 2000);
  });
  return button;
}

/** Puts words on the clipboard; a page opened from a file may lack the first way, and has the second. */
async function copied(words, button) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    const field = made("textarea", { class: "spoken", "aria-hidden": "true" });
    field.value = words;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    button.focus();
    if (!done && button.previousElementSibling) getSelection().selectAllChildren(button.previousElementSibling);
    return done;
  }
}
