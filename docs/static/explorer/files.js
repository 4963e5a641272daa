// Reads a run that `python -m scripts.export_explorer` has written: numbers and a name, of which nothing is executed.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});
  const FORMAT = "icl_lab explorer run", VERSION = 1, DEPTH = 12;
  lab.LARGEST_FILE = 20e6;

  const isNumbers = (value, count) =>
    Array.isArray(value) && value.length === count && value.every((each) => Number.isFinite(each));
  const isCount = (value, most) => Number.isInteger(value) && value >= 1 && value <= most;
  const isWithin = (value, least, most) => Number.isFinite(value) && value >= least && value <= most;

  // {run} of a file's text, or {error}: a sentence.
  lab.readRun = (text) => {
    let made;
    try {
      made = JSON.parse(text);
    } catch {
      return { error: "This file is no export of a run: it is not JSON." };
    }
    if (made === null || typeof made !== "object" || made.format !== FORMAT)
      return { error: "This file is no export of a run; python -m scripts.export_explorer --run RUN makes one." };
    if (made.version !== VERSION)
      return { error: "This file was made by another version of scripts.export_explorer; export the run again." };
    const damaged = { error: "This export is damaged; export the run again." };
    const counts = isCount(made.dim, 32) && isCount(made.pairs, 1e6) && isCount(made.layers, 20) && isCount(made.heads, 64);
    const texts = typeof made.name === "string" && ["uniform", "gaussian"].includes(made.inputs);
    const sizes = isWithin(made.range, 1e-6, 1e6) && isWithin(made.scale, 1e-6, 1e6) && isWithin(made.noise, 0, 1e6);
    const rest = isWithin(made.damping, -10, 10) && isWithin(made.clip, 0, 1e12) && typeof made.recurrent === "boolean";
    if (!counts || !texts || !sizes || !rest || !Array.isArray(made.steps) || !made.steps.length) return damaged;
    const rates = made.rates || {};
    if (!["gd", "gdpp", "gamma"].every((name) => isNumbers(rates[name], DEPTH))) return damaged;
    const length = made.steps.length, named = made.solutions;
    if (!isNumbers(made.steps, length) || !Array.isArray(made.weights) || made.weights.length !== length) return damaged;
    if (!Array.isArray(named) || named.length !== length || !named.every((each) => typeof each === "string")) return damaged;
    const distinct = made.recurrent ? 1 : made.layers;
    const wanted = 2 * (made.dim + 1) ** 2 * made.heads * distinct;
    if (made.weights.some((each) => Array.isArray(each) && each.length !== wanted))
      return { error: `The weights are of another width: ${made.dim} inputs and a label need ${wanted} numbers.` };
    if (!made.weights.every((each) => isNumbers(each, wanted))) return damaged;
    return { run: lab.asRun(made) };
  };

  // A run with its weights as arrays of float64.
  lab.asRun = (made) => ({ ...made, weights: made.weights.map((each) => Float64Array.from(each)) });
})();
