// The page: builds its parts, reads the state from the link, and draws.
(() => {
  "use strict";
  const lab = window.lab, root = document.getElementById("explorer");
  const DEPTH = 12;
  const runs = new Map(window.EXPLORER_RUNS.map((run) => [run.name, lab.asRun(run)]));
  const NAMES = {
    "gradient descent": "gradient descent", mixed: "mixed minimum", plateau: "rank-one plateau", swapped: "swapped", moving: "still moving", "": "",
  };
  const SAID = {
    "gradient descent": "The layer makes one step of gradient descent.",
    swapped: "In these weights inputs and labels have swapped roles. In one dimension the prediction is still the same step of gradient descent.",
    mixed: "Mixed minimum: along a diagonal the layer swaps inputs and labels, along the other it does gradient descent. More training does not help.",
    plateau: "The layer has learnt one direction, a diagonal, and predicts nothing along the other. It leaves much later or never.",
    moving: "The weights are still moving: this is none of the solutions.",
  };
  const BECOME = {
    "gradient descent": "The weights become gradient descent",
    mixed: "The weights become the mixed minimum",
    plateau: "The weights stay on the plateau",
    swapped: "The weights become the swapped solution",
  };
  const TRY = [
    ["1 Start", "Drag any point. The ring (layer) stays nearly on the dot (one step of gradient descent).", "#v1"],
    ["2 Noise", "The loss now has its minimum at a wrong w. Ridge stops before that minimum; eight steps of gradient descent go there.", "#v1&depth=8&noise=0.6&seed=11"],
    ["3 More noise, one step", "One step of gradient descent nearly catches ridge; only more steps fit the noise. The layer is worse: its step size is frozen.", "#v1&noise=1"],
    ["4 Far inputs", "Inputs three times as large: the layer overshoots. Gradient descent with a step size for these inputs does not.", "#v1&range=3&seed=5"],
    ["5 Frozen step size", "Give gradient descent the step size of the training, and it fails like the layer: that size is in the weights.", "#v1&range=3&seed=5&frozen=1"],
    ["6 A bad seed", "Same training, another seed: the layer found the mixed minimum, a different solution, as three of eight seeds do.", "#v1&run=d2_seed1"],
    ["7 A plateau", "This seed stays on the rank-one plateau: it predicts along one direction only. Play its training, and see when the loss stops falling.", "#v1&run=d2_seed0"],
    ["8 One dimension", "Inputs and labels have swapped roles in the weights. The predictions are those of gradient descent.", "#v1&run=d1_seed0"],
    ["9 Two layers", "Trained as two layers with shared weights, it beats two steps of gradient descent, and here two steps of GD++ too.", "#v1&run=d2_shared&depth=2&plus=1"],
  ];

  let state, run, error = "";
  let reach = 0, tall = 0, moved = "nothing"; // of the picture of w and, in 1-D, of the labels; what was dragged last
  const kept = new Map(); // what is slow to compute, by all that it depends on

  // --- parts of the page ---

  const alert = lab.html(root, "p", { class: "error", role: "alert" });
  const tour = lab.tour(root, TRY), fold = lab.html(root, "details", { class: "fold" }), folded = lab.html(fold, "summary");
  const chips = lab.html(fold, "div");
  fold.open = !matchMedia("(max-width: 46em)").matches;
  const finding = lab.html(root, "p", { class: "finding", "aria-live": "polite" });
  const grid = lab.html(root, "div", { class: "grid" });
  const cards = {
    context: lab.card(grid, "context", "The context: pairs (x, y)", ""),
    landscape: lab.card(grid, "landscape", "The loss of this context, for each w", ""),
    controls: lab.html(grid, "section", { class: "card controls", "aria-label": "settings" }),
    values: lab.html(grid, "section", { class: "card values", "aria-label": "predictions and losses" }),
    training: lab.card(grid, "third", "Over training", "Mean loss on other contexts. Drag the slider, and watch the path appear above."),
    weights: lab.card(grid, "third", "The weights", ""),
    depth: lab.card(grid, "third", "Loss by depth", ""),
  };
  const pictures = {
    context: new lab.Picture(cards.context, 340, 328, "group", "the pairs of the context, which can be moved"),
    landscape: new lab.Picture(cards.landscape, 420, 328, "group", "the loss over w, with the paths of layers and algorithms"),
    training: new lab.Picture(cards.training, 340, 190, "img", "mean loss at each step of the training"),
    weights: new lab.Picture(cards.weights, 345, 292, "img", "the weights of the layer and of one step of gradient descent"),
    depth: new lab.Picture(cards.depth, 375, 325, "img", "mean loss by number of layers and of steps"),
  };

  const set = (name, value) => {
    state[name] = value;
    error = "";
    anew();
  };
  const twoDigits = (value) => value.toFixed(2);
  const sliders = {
    depth: lab.slider(cards.controls, "Layers, and steps", 1, DEPTH, 1, (value) => set("depth", value)),
    damping: lab.slider(cards.controls, "Damping: part of its update that a layer makes", 0, 1, 0.05, (value) => set("damping", value)),
    noise: lab.slider(cards.controls, "Noise of the labels, σ", 0, 1, 0.05, (value) => set("noise", value)),
    range: lab.slider(cards.controls, "Range of the inputs", 0.25, 3, 0.25, (value) => set("range", value)),
    pairs: lab.slider(cards.controls, "Pairs in the context", 1, 40, 1, (value) => set("pairs", value)),
  };
  const row = lab.html(cards.controls, "div", { class: "row" });
  const contexts = lab.contexts(row, () => state, () => anew());
  const plus = lab.button(row, "GD++, which also transforms the inputs", "false", () => set("plus", 1 - state.plus));
  const frozen = lab.button(row, "Step size of the training for GD", "false", () => set("frozen", 1 - state.frozen));
  const columns = lab.valueTable(cards.values, [["layer", "--ex-layer"], ["gd", "--ex-gd"], ["plus", "--ex-plus"], ["ridge", "--ex-ridge"], ["truth", "--ex-ink"]], ["at the query", "mean loss"]);
  lab.html(cards.values, "p", { class: "note" }, "At the query: this context only. Mean loss: other contexts with these settings. The mean loss decides who is better.");

  const step = lab.slider(cards.training, "Training step", 0, 1, 1, (value) => {
    stop();
    set("step", value === run.steps.length - 1 ? -1 : value);
  });
  const stop = lab.player(lab.html(cards.training, "div", { class: "row" }), "training", 140, () => (state.step = 0), () => {
    if (state.step < 0) return true;
    set("step", state.step + 1 >= run.steps.length - 1 ? -1 : state.step + 1);
  });

  lab.html(root, "h2", { id: "try-this" }, "Try this");
  lab.suggestions(root, TRY);
  lab.html(root, "h2", { id: "keep" }, "Keep and share");
  const keep = lab.html(root, "div", { class: "row" });
  const parts = () => {
    const colours = lab.colours(root);
    return [[pictures.context, pictures.landscape, pictures.depth], finding.firstChild.textContent, settingsSaid(), colours];
  };
  const named = () => lab.fileName(`explorer_${run.name}`, lab.write({ ...state, run: lab.FIELDS.run[0] }));
  lab.button(keep, "Save as SVG", null, () => lab.save("svg", named(), ...parts()));
  lab.button(keep, "Save as PNG", null, () => lab.save("png", named(), ...parts()));
  lab.copyLink(keep, () => lab.write(state));
  lab.html(root, "h2", { id: "your-own-run" }, "Your own run");
  lab.html(root, "p", {}, "Export a run of linear layers, then drop the file anywhere on this page or choose it. It is read here, and sent nowhere.");
  const code = lab.html(root, "pre", { tabindex: 0 });
  lab.html(code, "code", {}, "python -m runners.run lsa1 --config.dim=2 --config.snapshots=true --config.log_records=40 --out runs/mine\npython -m scripts.export_explorer --run runs/mine");
  const file = lab.html(lab.html(root, "div", { class: "row" }), "input", { type: "file", class: "file", accept: ".json", "aria-label": "an exported run" });

  // --- files ---

  const open = (given) => {
    if (!given) return;
    if (given.size > lab.LARGEST_FILE) return fail("This file is larger than any export of a run (20 MB).");
    given.text().then((text) => {
      const read = lab.readRun(text);
      if (read.error) return fail(read.error);
      let name = read.run.name.replace(/[^\w-]/g, "_").slice(0, 30) || "own";
      if (window.EXPLORER_RUNS.some((each) => each.name === name)) name = `own_${name}`;
      runs.set(name, { ...read.run, name, own: true });
      state = lab.read("").state;
      choose(name);
    }, () => fail("This file cannot be read."));
  };
  const fail = (sentence) => {
    error = alert.textContent = sentence;
    ask();
    alert.scrollIntoView({ block: "center" });
  };
  file.addEventListener("change", () => open(file.files[0]));
  addEventListener("dragover", (event) => {
    event.preventDefault();
    root.classList.add("over");
  });
  addEventListener("dragleave", (event) => event.relatedTarget || root.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("over");
    if (event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
    else fail("What was dropped is no file.");
  });

  // --- state ---

  const choose = (name) => {
    const before = run;
    run = runs.get(name);
    state.run = name;
    state.step = -1;
    state.depth = run.layers;
    state.damping = run.damping;
    if (!before || before.dim !== run.dim) state.moved = {};
    if (!before || before.own || run.own || before.pairs !== run.pairs) state.pairs = Math.min(run.pairs, 40);
    if (run.own) state.noise = Math.min(run.noise, 1);
    state.range = run.own ? Math.min(3, Math.max(0.25, run.range)) : state.range;
    stop();
    anew();
  };

  const load = (hash) => {
    const read = lab.read(hash);
    state = read.state;
    error = read.error || "";
    if (!runs.has(state.run)) {
      error = `This page has no run named ${state.run}, so it shows its first one.`;
      state.run = lab.FIELDS.run[0];
    }
    run = runs.get(state.run);
    for (const [name, values] of Object.entries(state.moved))
      if (values.length !== (name[0] === "p" && run.dim === 1 ? 2 : run.dim) || (name[0] === "p" && run.dim > 2)) {
        error = "This link moves points of a context of another dimension, so they stay where they were drawn.";
        state.moved = {};
        break;
      }
    if (state.step >= run.steps.length) state.step = -1;
    if (state.depth > deepest()) state.depth = deepest();
    stop();
    anew();
  };

  const deepest = () => (run.layers > 1 && !run.recurrent ? run.layers : DEPTH);
  const settings = () => ({ ...state, frozen: state.frozen === 1, plus: state.plus === 1 });

  // --- drawing ---

  const view = () => {
    const dim = run.dim, place = state.step < 0 ? run.steps.length - 1 : state.step, weights = run.weights[place];
    const drawn = lab.draw(state.seed, state.pairs, dim, run.inputs, run.scale), w = Float64Array.from(state.moved.w || drawn.w);
    const base = Float64Array.from(drawn.x), noises = Float64Array.from(drawn.e);
    const query = Float64Array.from(state.moved.q || drawn.q, (value) => state.range * value);
    for (let i = 0; i < state.pairs; i++) {
      const moved = state.moved[`p${i}`];
      if (moved) for (let k = 0; k < Math.min(dim, moved.length); k++) base[i * dim + k] = moved[k];
    }
    const x = base.map((value) => state.range * value), y = lab.labels(x, w, noises, state.noise, dim);
    if (dim === 1) for (let i = 0; i < state.pairs; i++) if (state.moved[`p${i}`]) y[i] = state.moved[`p${i}`][1];
    const moments = lab.moments(x, y, dim), chosen = settings();
    const paths = lab.paths(run, weights, moments, state.depth, chosen);
    for (const name of ["layer", "gd", "gdpp"]) paths[name] = bounded(paths[name]);
    const basis = dim > 2 ? plane(w, base, dim) : null;
    const project = basis ? (v) => basis.map((axis) => axis.reduce((sum, each, k) => sum + each * v[k], 0)) : (v) => v;
    const shown = { run, weights, settings: chosen, step: place, x, y, w, query, base, moments, paths, basis, project };
    shown.projected = (points, i) => project(points.subarray(i * dim, (i + 1) * dim));
    shown.length = (v) => Math.hypot(...v);
    shown.tall = Math.max(0.35, 0.62 * Math.hypot(...w)) * Math.max(1, state.range) * (run.inputs === "gaussian" ? 4 : 1);
    if (dim === 1) shown.tall = tall = moved === "pair" ? tall : Math.max(moved === "truth" ? tall : 0, shown.tall, 1.08 * Math.max(...y.map(Math.abs)));
    shown.colours = lab.colours(root);
    shown.light = shown.colours.paper.toLowerCase() === "#ffffff";
    reach = reached(shown);
    shown.reach = reach;
    if (dim === 2) shown.plane = { s: paths.s, minimum: lab.ridge(paths.s, paths.b, 2, 0) };
    if (dim > 2) shown.plane = slice(paths, basis, dim);
    return shown;
  };

  // How far the picture of w reaches from 0: to the true w and ridge, and to the paths unless they leave far; in steps of
  // a factor of sqrt 2. While points are dragged it stays, so that what is dragged stays under the pointer; it grows if
  // a pair that is moved pushes something out of the picture.
  const reached = ({ w, paths, project }) => {
    const far = (v) => {
      const at = project(v);
      return run.dim === 1 ? Math.abs(at[0]) : Math.max(Math.abs(at[0]) / lab.WIDE, Math.abs(at[1]));
    };
    const sure = Math.max(far(w), far(paths.ridge), 0.45 * run.scale), rest = [...paths.layer, ...paths.gd].map(far);
    const most = Math.max(sure, ...rest.filter((each) => each < Math.max(2.5 * sure, 3 * run.scale)));
    const wanted = 1.2 * run.scale * 2 ** (Math.max(0, Math.ceil(2 * Math.log2((1.12 * most) / (1.2 * run.scale)))) / 2);
    if (!reach || moved === "nothing") return wanted;
    return moved === "pair" && most > reach ? Math.max(reach, wanted) : reach;
  };

  // A path that diverges, held where it was last of a size that can be drawn.
  const bounded = (path) => {
    let last = path[0];
    return path.map((w) => (last = w.every((value) => Math.abs(value) < 1e9) ? w : last));
  };

  // Two directions of w: along the true w, and across it toward one step of gradient descent.
  const plane = (w, x, dim) => {
    const along = w.map((value) => value / Math.hypot(...w)), { b } = lab.normalEquations(lab.moments(x, lab.labels(x, w, new Float64Array(x.length / dim), 0, dim), dim), dim);
    const inside = b.reduce((sum, each, k) => sum + each * along[k], 0), across = b.map((each, k) => each - inside * along[k]), size = Math.hypot(...across) || 1;
    return [along, across.map((each) => each / size)];
  };

  // The loss in the plane of these directions through 0.
  const slice = (paths, basis, dim) => {
    const s = new Float64Array(4), b = new Float64Array(2);
    basis.forEach((one, i) => {
      b[i] = one.reduce((sum, each, k) => sum + each * paths.b[k], 0);
      basis.forEach((two, j) => {
        const image = lab.times(paths.s, two, dim);
        s[2 * i + j] = one.reduce((sum, each, k) => sum + each * image[k], 0);
      });
    });
    return { s, minimum: lab.ridge(s, b, 2, 0) };
  };

  const change = {
    pair: (i, to) => {
      const dim = run.dim;
      state.moved[`p${i}`] = dim < 3 ? to : lifted(now.base.subarray(i * dim, (i + 1) * dim), to);
      moved = "pair";
      ask();
    },
    query: (to) => {
      state.moved.q = run.dim < 3 ? to : lifted(now.query.map((value) => value / state.range), to);
      ask();
    },
    truth: (to) => {
      state.moved.w = to;
      moved = "truth";
      ask();
    },
  };
  // A vector whose part in the plane is replaced.
  const lifted = (v, to) => {
    const inside = now.project(v);
    return Array.from(v, (value, k) => value + (to[0] - inside[0]) * now.basis[0][k] + (to[1] - inside[1]) * now.basis[1][k]);
  };

  let now = null, losses = null;
  const once = (make, ...key) => {
    const name = key.join();
    if (!kept.has(name)) {
      if (kept.size > 200) kept.clear();
      kept.set(name, make());
    }
    return kept.get(name);
  };
  const draw = () => {
    now = view();
    const contexts = run.dim > 4 ? 40 : 240, few = run.dim > 4 ? 12 : 60, chosen = now.settings, depth = state.depth;
    const key = [run.name, state.pairs, state.noise, state.range];
    losses = {
      ...once(() => lab.algorithmLosses(run, chosen, deepest(), contexts), ...key, state.frozen),
      layer: once(() => lab.layerLosses(run, now.weights, chosen, deepest(), contexts), ...key, state.damping, now.step),
    };
    lab.drawContext(pictures.context, now, change);
    lab.drawLandscape(pictures.landscape, now, change);
    lab.drawDepth(pictures.depth, now, losses);
    lab.drawWeights(pictures.weights, now);
    cards.training.hidden = run.steps.length < 2;
    if (run.steps.length > 1) {
      const over = once(() => run.weights.map((weights) => lab.layerLosses(run, weights, chosen, depth, few)[depth]), "over", ...key, state.damping, depth);
      lab.drawTraining(pictures.training, now, over, losses.gd[depth]);
    }
    write();
  };

  const settingsSaid = () =>
    `${runSaid()}; ${state.pairs} pairs, inputs ×${state.range}, noise ${state.noise}, damping ${state.damping}, step ${run.steps[now.step]} of training`;
  const runSaid = () => `${run.dim} input${run.dim > 1 ? "s" : ""}, ${run.layers} layer${run.layers > 1 ? "s" : ""}${run.own ? `, run ${run.name}` : seedOf(run) ? `, ${seedOf(run)}` : ""}`;
  const seedOf = (one) => (/seed(\d+)/.exec(one.name) ? `seed ${/seed(\d+)/.exec(one.name)[1]}` : "");

  const write = () => {
    alert.textContent = error;
    tour(lab.write(state));
    const depth = state.depth, { paths } = now, solution = run.solutions[now.step], last = now.step === run.steps.length - 1;
    const at = (w) => w.reduce((sum, each, k) => sum + each * now.query[k], 0);
    const step = depth > 1 ? `${depth} steps of GD` : "1 step of GD";
    const line = (name, label, value, loss) => {
      columns[name].head.textContent = label;
      columns[name].cells[0].textContent = lab.number(value);
      columns[name].cells[1].textContent = loss === null ? "" : lab.number(loss);
    };
    line("layer", `○\u00a0${depth > 1 ? `${depth} layers` : "layer"}`, at(paths.layer[depth]), losses.layer[depth]);
    line("gd", `●\u00a0${step}`, at(paths.gd[depth]), losses.gd[depth]);
    line("plus", `■\u00a0GD++, ${depth} step${depth > 1 ? "s" : ""}`, at(paths.gdpp[depth]), losses.gdpp[depth]);
    line("ridge", "◆\u00a0ridge (Bayes)", at(paths.ridge), losses.ridge);
    line("truth", "true w·x", at(now.w), null);
    for (const each of [columns.plus.head, ...columns.plus.cells]) each.hidden = !state.plus;
    sliders.depth(depth, String(depth), deepest(), run.recurrent || run.layers === 1 ? "Layers (one, repeated), and steps" : "Layers, and steps");
    sliders.damping(state.damping, twoDigits(state.damping));
    sliders.noise(state.noise, twoDigits(state.noise));
    sliders.range(state.range, `× ${state.range}`);
    sliders.pairs(state.pairs, String(state.pairs));
    contexts();
    plus.setAttribute("aria-pressed", state.plus === 1);
    frozen.setAttribute("aria-pressed", state.frozen === 1);
    showStep(now.step);
    const [title, text] = headline(solution, last);
    lab.say(finding, title, text);
    cards.context.said.textContent = run.dim === 1 ? "Height: label y. Lines: predictions of layer, GD and ridge. Drag any point." : run.dim === 2
      ? "Place: input x. Colour: label y; behind, what the layer predicts there. Drag any point; ? is the query."
      : `The ${run.dim} inputs, projected on the plane at the right. Colour: label. Drag any point.`;
    cards.landscape.said.textContent = run.dim > 2
      ? `The plane of w through the start, the true w and the gradient; ${run.dim - 2} directions are not seen. Paths are projected on it.`
      : run.dim === 1 ? "All predictions are w·x; all begin at w = 0. The lowest point fits the pairs best. Drag the true w."
      : "All predictions are w·x; all begin at w = 0. Lines: equal loss on the pairs. Drag the cross, the true w.";
    cards.weights.heading.textContent = run.layers === 1 && BECOME[run.solutions[run.steps.length - 1]] || "The weights, and a step of GD";
    cards.weights.said.textContent = run.layers > 1 && !run.recurrent ? `Layer ${depth} of ${run.layers}, and the weights that make one step of gradient descent.`
      : `${sizeOf(run)} numbers each. ${run.recurrent || depth > 1 ? "" : "Pale: never read. "}Sign and scale are free, and set here as in gradient descent.`;
    cards.depth.said.textContent = run.layers > 1 && !run.recurrent ? "Mean loss on other contexts, by layers used, and by steps of each algorithm."
      : "Mean loss on other contexts: the layer applied again and again, and as many steps of each algorithm.";
    drawChips();
  };
  const sizeOf = (one) => `${one.dim + 1} × ${one.dim + 1}`;
  const showStep = (place) => step(place, String(run.steps[place]), run.steps.length - 1);

  // Whether the loss of the training has not begun to fall: then the weights are near 0, and no solution has been found.
  const untrained = () => {
    if (!["plateau", ""].includes(run.solutions[now.step])) return false;
    const training = { ...run, frozen: true }, losses = once(() => lab.layerLosses(run, now.weights, training, run.layers, run.dim > 4 ? 40 : 240), "training", run.name, now.step);
    return losses[run.layers] > 0.95 * losses[0];
  };

  // What there is to see: a title, and a sentence or two.
  const headline = (solution, last) => {
    const depth = state.depth, layer = losses.layer[depth], gd = losses.gd[depth], ridge = losses.ridge, times = layer / gd;
    const far = state.range > 1.3 * run.range, clipped = run.clip > 0 && lab.largestToken(now) > run.clip;
    const shown = (value) => lab.number(value).replace(/\.0+$/, "");
    const zero = untrained();
    if (clipped) return ["Here the run clips its activations, and this picture does not", `Some activation is larger than ${run.clip}. Choose inputs that are smaller.`];
    if (!last) return [`After ${run.steps[now.step]} training steps ${zero ? "the layer is not trained yet" : solution === "moving" || !solution ? "the layer is on its way" : `the layer is at: ${NAMES[solution]}`}`, `Its mean loss is ${shown(times)} times that of gradient descent. Move the slider below the loss, or play the training.`];
    if (far && !state.frozen && times > 1.5) return ["Far inputs break the trained layer, and not the algorithm", `The layer's mean loss is ${shown(times)} times that of gradient descent, whose step size is chosen for these inputs. The layer's step size is fixed in its weights.`];
    if (far && state.frozen) return [times < 1.3 && times > 0.7 ? "With the step size of the training, gradient descent fails in the same way" : "The step size of the training is too large for far inputs", `Ridge regression, which needs no step size, still has a mean loss of ${lab.number(ridge)}; gradient descent's is ${lab.number(gd)}.`];
    if (zero) return ["This layer is not trained yet", `It predicts almost zero for every context, and its mean loss is ${shown(times)} times that of gradient descent.`];
    if (solution === "mixed") return ["This seed found a different solution: the mixed minimum", `${SAID.mixed} Its mean loss is ${shown(times)} times that of gradient descent.`];
    if (solution === "plateau") return ["This seed stays on the rank-one plateau", `${SAID.plateau} Its mean loss is ${shown(times)} times that of gradient descent.`];
    if (state.noise > 0) {
      const steps = depth > 1 ? `${depth} steps of gradient descent` : "one step of gradient descent", worse = depth > 1 && gd > losses.gd[1], near = gd < 1.06 * ridge;
      const layers = !state.frozen && times > 1.1 ? ` The layer has ${lab.number(layer)}: its step size is frozen in its weights, and that of gradient descent becomes smaller with noise.` : "";
      return [worse ? "With noise, ridge beats gradient descent, and more steps fit the noise" : near && depth === 1 ? "With much noise, one step of gradient descent nearly catches ridge" : "With noise, ridge beats a step of gradient descent",
        `The lowest point of the loss is no longer the true w. Ridge knows the noise and stops before that point: its mean loss is ${lab.number(ridge)}, and ${lab.number(gd)} for ${steps}.${worse ? ` One step had ${lab.number(losses.gd[1])}.` : near && depth === 1 && deepest() > 1 ? ` Only more steps fit the noise: ${DEPTH} of them have ${lab.number(losses.gd[deepest()])}.` : ""}${layers}`];
    }
    if (solution === "swapped") return ["Inputs and labels have swapped roles, and the predictions are gradient descent's", SAID.swapped];
    if (depth > 1 && times < 0.8) return [`${depth} layers beat ${depth} steps of gradient descent`, `Their mean loss is ${shown(times)} times that of gradient descent; that of GD++ is ${shown(losses.gdpp[depth] / gd)} times.`];
    if (depth > 1 && times > 1.25) return [`The layer, applied ${depth} times, falls behind ${depth} steps of gradient descent`, `It was trained ${run.layers === 1 ? "as a single layer" : "at another depth"}: its step is too large to be repeated. Lower the damping to .75, and it follows.`];
    if (Math.abs(times - 1) < 0.06) return [depth > 1 ? `${depth} layers land nearly where ${depth} steps of gradient descent land` : "One trained layer lands nearly where one step of gradient descent lands", "Whatever the context, the layer predicts w·x, with a w that it makes from the pairs. Drag the pairs: ring and dot move together, and stay close."];
    return [times > 1 ? "Here the layer is worse than gradient descent" : "Here the layer is better than gradient descent", `Its mean loss is ${shown(times)} times that of gradient descent. ${state.pairs !== run.pairs ? `It was trained on ${run.pairs} pairs, and the length of its step is fixed in its weights.` : solution && solution !== "gradient descent" ? SAID[solution] : ""}`];
  };

  const SHORT = { ...NAMES, mixed: "mixed", plateau: "plateau", moving: "moving" };
  const DOTS = { "gradient descent": "--ex-gd", swapped: "--ex-plus", mixed: "--ex-layer", plateau: "--ex-ridge" };
  let drawnChips = "";
  const drawChips = () => {
    const said = [...runs.keys()].join() + state.run;
    if (said === drawnChips) return;
    drawnChips = said;
    const held = chips.contains(document.activeElement), count = (name) => window.EXPLORER_RUNS.filter((each) => /^d2_seed/.test(each.name) && each.solutions.at(-1) === name).length;
    folded.textContent = `Seeds and sizes. The eight seeds: ${count("gradient descent")} become gradient descent, ${count("mixed")} the mixed minimum, and ${count("plateau")} stay on the plateau.`;
    chips.textContent = "";
    const groups = [
      ["Two inputs", [...runs.values()].filter((each) => each.dim === 2 && !each.own)],
      ["Other sizes", [...runs.values()].filter((each) => each.dim !== 2 && !each.own)],
      ["Your runs", [...runs.values()].filter((each) => each.own)],
    ];
    for (const [title, list] of groups.filter((each) => each[1].length)) {
      const line = lab.html(chips, "div", { class: "row runs", role: "group", "aria-label": title });
      lab.html(line, "b", {}, title);
      for (const each of list) {
        const solution = each.solutions[each.steps.length - 1];
        const own = each.own ? `${each.name}: ` : each.layers > 1 ? `2 layers, ${each.recurrent ? "shared" : "own"} weights` : each.dim === 2 ? `seed ${each.name.slice(-1)}: ` : `D = ${each.dim}: `;
        const name = each.layers > 1 && !each.own ? own : own + (SHORT[solution] || `${each.layers} layers`);
        const chip = lab.button(line, "", each.name === state.run, () => choose(each.name));
        if (DOTS[solution]) lab.html(chip, "i", { style: `background: var(${DOTS[solution]})` });
        chip.append(name);
        if (held && each.name === state.run) chip.focus();
      }
    }
  };

  const remember = () => history.replaceState(null, "", run.own ? location.pathname : lab.write(state));
  const ask = lab.frames(draw, () => remember());
  const anew = () => {
    moved = "nothing";
    ask();
  };
  addEventListener("hashchange", (event) => lab.followed(event, load));
  lab.onScheme(() => ask());
  load(location.hash);
  lab.explorer = { draw, ask, now: () => now, state: () => state };
})();
