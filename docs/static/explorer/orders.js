// The page on orders: one context in 200 orders, and where each model's w lies for each of them.
(() => {
  "use strict";
  const lab = window.lab, root = document.getElementById("orders"), ORDERS = 200;
  const FEW = 20; // orders, whose points are no cloud yet
  const models = window.ORDER_MODELS.map(lab.asModel), pairs = models[0].pairs, dim = 2;
  const SHOWN = {
    lsa1: ["●\u00a0lsa1", "--ex-layer"],
    twolayer_random: ["●\u00a0twolayer, trained in random order", "--ex-plus"],
    twolayer_easy: ["●\u00a0twolayer, trained with easy pairs first", "--ex-ridge"],
  };
  const FIELDS = { seed: [3, 0, 999999, 0], noise: [0, 0, 1, 2], count: [200, 1, 200, 0] };
  const TRY = [
    ["1 All orders", "lsa1 is one point: it has no positions, so it cannot see the order. twolayer, trained with easy pairs first, is a smear.", "#v1"],
    ["2 One at a time", "Press Play or Next order: each order moves the models with positions, and leaves lsa1 where it is.", "#v1&count=1"],
    ["3 Another context", "Trained in random order, the same architecture moves far less: its use of the order comes from training.", "#v1&seed=21"],
    ["4 Noise", "Noisy labels differ more from pair to pair, so their order matters more.", "#v1&noise=0.6"],
  ];
  let state, error = "", now = null;
  let frame = null, moved = "nothing"; // of the picture of w, and what was dragged last
  const orders = lab.orders(ORDERS, pairs, 7);

  const alert = lab.html(root, "p", { class: "error", role: "alert" });
  const tour = lab.tour(root, TRY);
  const finding = lab.html(root, "p", { class: "finding", "aria-live": "polite" });
  const grid = lab.html(root, "div", { class: "grid" });
  const cards = {
    context: lab.card(grid, "context", "The context: ten pairs (x, y)", "Place: input x. Colour: label y. The number is the pair's position in the last order. Drag any point."),
    cloud: lab.card(grid, "landscape", "w of each model, once for each order", "w is the sensitivity: the gradient of the prediction at the query. Square: pairs with the easy ones first."),
    controls: lab.html(grid, "section", { class: "card controls", "aria-label": "settings" }),
    values: lab.html(grid, "section", { class: "card values", "aria-label": "predictions in these orders" }),
  };
  const pictures = {
    context: new lab.Picture(cards.context, 340, 328, "group", "the pairs of the context, which can be moved"),
    cloud: new lab.Picture(cards.cloud, 420, 328, "group", "w of each model for each order of the pairs"),
  };
  const set = (name, value) => {
    state[name] = value;
    anew();
  };
  const sliders = {
    count: lab.slider(cards.controls, "Orders", 1, ORDERS, 1, (value) => {
      stop();
      set("count", value);
    }),
    noise: lab.slider(cards.controls, "Noise of the labels, σ", 0, 1, 0.05, (value) => set("noise", value)),
  };
  const row = lab.html(cards.controls, "div", { class: "row" });
  const stop = lab.player(row, "orders", 70, () => (state.count = 1), () => {
    if (state.count >= ORDERS) return true;
    set("count", state.count + 1);
  });
  lab.button(row, "Next order", null, () => {
    stop();
    set("count", (state.count % ORDERS) + 1);
  });
  const contexts = lab.contexts(row, () => state, () => anew());
  const columns = lab.valueTable(cards.values, models.map((model) => [model.name, SHOWN[model.name][1]]), ["lowest at ?", "highest at ?"]);
  for (const model of models) columns[model.name].head.textContent = SHOWN[model.name][0];
  lab.html(root, "h2", { id: "try-this" }, "Try this");
  lab.suggestions(root, TRY);
  lab.html(root, "h2", { id: "keep" }, "Keep and share");
  const keep = lab.html(root, "div", { class: "row" });
  for (const kind of ["svg", "png"])
    lab.button(keep, `Save as ${kind.toUpperCase()}`, null, () =>
      lab.save(kind, lab.fileName("orders", lab.write(state, FIELDS)), [pictures.context, pictures.cloud], finding.firstChild.textContent, `ten pairs in ${state.count} orders, noise ${state.noise}`, lab.colours(root)));
  lab.copyLink(keep, () => lab.write(state, FIELDS));

  const load = (hash) => {
    const read = lab.read(hash, FIELDS);
    state = read.state;
    error = read.error || "";
    if (Object.entries(state.moved).some(([, values]) => values.length !== dim)) {
      error = "This link moves points of a context of another dimension, so they stay where they were drawn.";
      state.moved = {};
    }
    stop();
    anew();
  };

  const view = () => {
    const drawn = lab.draw(state.seed, pairs, dim, "uniform", 1), x = Float64Array.from(drawn.x), w = Float64Array.from(state.moved.w || drawn.w);
    for (let i = 0; i < pairs; i++) if (state.moved[`p${i}`]) x.set(state.moved[`p${i}`], i * dim);
    const y = lab.labels(x, w, drawn.e, state.noise, dim), query = Array.from(state.moved.q || drawn.q), easy = lab.easyFirst(x, y, dim);
    const clouds = models.map((model) => {
      const predicted = lab.ordered(model, x, y, query);
      return { model, found: orders.slice(0, state.count).map(predicted), easy: predicted(easy) };
    });
    return { x, y, w, query, clouds, colours: lab.colours(root), tall: Math.max(0.35, 0.62 * Math.hypot(...w)) };
  };

  const draw = () => {
    now = view();
    drawContext();
    drawCloud();
    write();
  };

  const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
  const text = (picture, name, x, y, said, anchor, more = {}) =>
    picture.put(name, "text", { x, y, "text-anchor": anchor, "font-size": 11, fill: now.colours.muted, ...more }, said);

  const drawContext = () => {
    const picture = pictures.context, { colours } = now, half = 0.6, size = 300, left = 34, top = 8;
    const to = (v) => [left + ((clamp(v[0], -half, half) + half) / (2 * half)) * size, top + size - ((clamp(v[1], -half, half) + half) / (2 * half)) * size];
    const from = (pixel) => [clamp(((pixel[0] - left) / size) * 2 * half - half, -half, half), clamp(half - ((pixel[1] - top) / size) * 2 * half, -half, half)];
    picture.begin();
    picture.put("paper", "rect", { x: left, y: top, width: size, height: size, fill: colours.paper, stroke: colours.line });
    text(picture, "x0", left, top + size + 13, "−0.6", "start");
    text(picture, "x1", left + size, top + size + 13, "0.6", "end");
    text(picture, "x", left + size / 2, top + size + 14, "x₁", "middle");
    text(picture, "y1", left - 4, top + 9, "0.6", "end");
    text(picture, "y0", left - 4, top + size, "−0.6", "end");
    text(picture, "y", left - 10, top + size / 2, "x₂", "middle", { transform: `rotate(-90 ${left - 10} ${top + size / 2})` });
    const last = orders[state.count - 1], at_ = (i) => to(i < pairs ? [now.x[2 * i], now.x[2 * i + 1]] : now.query), numbers = [];
    for (let i = 0; i < pairs; i++) {
      const at = [now.x[2 * i], now.x[2 * i + 1]], said = `${at.map((each) => each.toFixed(2)).join(", ")}; label ${now.y[i].toFixed(2)}; position ${last.indexOf(i) + 1}`;
      const group = lab.handle(picture, `pair${i}`, to(at), 9, `pair ${i + 1}: arrow keys move it`, [at[0].toFixed(2), said], (pixel) => {
        state.moved[`p${i}`] = from(pixel);
        moved = "pair";
        ask();
      });
      const share = now.y[i] / now.tall, fill = lab.signed(colours, share);
      picture.put(`pair${i}:dot`, "circle", { class: "ring", r: 10, fill, stroke: colours.ink, "stroke-width": 1.2 }, undefined, group);
      const light = colours.paper === "#ffffff" && Math.abs(share) > 0.6, [x, y] = at_(i);
      let away = [0, 0]; // where others overlap this point, its number stands beside it
      for (let other = 0; other <= pairs; other++) {
        const [dx, dy] = at_(other).map((each, k) => [x, y][k] - each), near = Math.hypot(dx, dy);
        if (other !== i && near < 17) away = near ? [away[0] + dx / near, away[1] + dy / near] : [away[0] + (i - other), away[1] - 1];
      }
      const size_ = Math.hypot(...away), beside = size_ > 0;
      numbers.push([`pair${i}:text`, "text", {
        x: (x + (beside ? (17 * away[0]) / size_ : 0)).toFixed(1), y: (y + 4 + (beside ? (17 * away[1]) / size_ : 0)).toFixed(1), "text-anchor": "middle", "font-size": 11, "font-weight": 600,
        fill: light && !beside ? "#ffffff" : colours.ink, "pointer-events": "none", stroke: beside ? colours.paper : "none", "stroke-width": 3, "paint-order": "stroke",
      }, String(last.indexOf(i) + 1)]);
    }
    const group = lab.handle(picture, "query", to(now.query), 9, "query: arrow keys move it", [now.query[0].toFixed(2), now.query.map((each) => each.toFixed(2)).join(", ")], (pixel) => {
      state.moved.q = from(pixel);
      moved = "pair";
      ask();
    });
    picture.put("query:dot", "circle", { class: "ring", r: 10, fill: "none", stroke: colours.ink, "stroke-width": 1.8, "stroke-dasharray": "3 2.5" }, undefined, group);
    picture.put("query:text", "text", { y: 4, "text-anchor": "middle", "font-size": 11, "font-weight": 700, fill: colours.ink, "pointer-events": "none" }, "?", group);
    for (const number of numbers) picture.put(...number);
    picture.sweep();
  };

  // Zoomed to what all orders, the easy one and the true w need. While the true w is dragged the zoom stays, so that the
  // cross stays under the pointer; while a pair is dragged it changes only if something would be out of the picture.
  const drawCloud = () => {
    const picture = pictures.cloud, { colours, clouds } = now, box = { x0: 34, x1: 410, y0: 8, y1: 308 };
    const all = clouds.flatMap(({ found, easy }) => [...found, easy].map((each) => each.gradient));
    const low = [0, 1].map((k) => Math.min(now.w[k], ...all.map((each) => each[k]))), high = [0, 1].map((k) => Math.max(now.w[k], ...all.map((each) => each[k])));
    const outside = frame && [0, 1].some((k) => Math.max(high[k] - frame.middle[k], frame.middle[k] - low[k]) > frame.half * (k ? 1 : (box.x1 - box.x0) / (box.y1 - box.y0)));
    if (!frame || moved === "nothing" || (moved === "pair" && outside))
      frame = { middle: low.map((each, k) => (each + high[k]) / 2), half: 0.12 * Math.ceil(Math.max(0.3, 0.62 * (high[1] - low[1]), 0.5 * (high[0] - low[0])) / 0.12) };
    const { middle, half } = frame;
    const scale = (box.y1 - box.y0) / (2 * half), centre = [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2];
    const to = (v) => [clamp(centre[0] + scale * (v[0] - middle[0]), box.x0, box.x1), clamp(centre[1] - scale * (v[1] - middle[1]), box.y0, box.y1)];
    picture.begin();
    picture.put("paper", "rect", { x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0, fill: colours.paper, stroke: colours.line });
    const ends = [], marks = [];
    clouds.toReversed().forEach(({ model, found, easy }) => {
      const [, name] = SHOWN[model.name], colour = colours[name.slice(5)];
      const dots = found.map(({ gradient }) => to(gradient)), dot = { stroke: colour, fill: "none", "stroke-linecap": "round" };
      marks.push(...dots.filter((_, k) => k % 3 === 0).map(([x, y]) => [x, y, model.encoding ? 3 : 7]));
      const through = (points) => points.map(([cx, cy]) => `M${Math.round(10 * cx) / 10} ${Math.round(10 * cy) / 10}h0`).join("");
      picture.put(`${model.name}:all`, "path", { ...dot, d: through(dots), "stroke-width": model.encoding ? 5 : 13, "stroke-opacity": model.encoding ? 0.5 : 1 });
      picture.put(`${model.name}:last`, "path", { ...dot, d: through(dots.slice(-1)), "stroke-width": model.encoding ? 8 : 13 });
      const [x, y] = to(easy.gradient);
      if (model.encoding) picture.put(`${model.name}:easy`, "rect", { x: x - 5, y: y - 5, width: 10, height: 10, fill: "none", stroke: colour, "stroke-width": 2.2 });
      const mean = to([0, 1].map((k) => found.reduce((sum, each) => sum + each.gradient[k], 0) / found.length));
      const rim = dots.reduce((best, one) => (one[0] - mean[0] > best[0] - mean[0] ? one : best), dots[0]);
      ends.push({ x: rim[0], y: rim[1], name: model.name === "twolayer_easy" ? "easy first" : model.name === "lsa1" ? "lsa1" : "random order", colour });
    });
    const [x, y] = to(now.w), group = lab.handle(picture, "truth", [x, y], 9, "true w: arrow keys move it", [now.w[0].toFixed(2), Array.from(now.w, (each) => each.toFixed(2)).join(", ")], (pixel) => {
      moved = "truth";
      state.moved.w = [middle[0] + (clamp(pixel[0], box.x0, box.x1) - centre[0]) / scale, middle[1] - (clamp(pixel[1], box.y0, box.y1) - centre[1]) / scale];
      ask();
    });
    picture.put("truth:cross", "path", { class: "ring", d: "M-8 0H8M0 -8V8", stroke: colours.ink, "stroke-width": 2 }, undefined, group);
    ends.push({ x, y, name: "true w", colour: colours.ink });
    lab.tags(picture, ends, box, colours, marks);
    text(picture, "x0", box.x0, box.y1 + 13, lab.tick(middle[0] - (box.x1 - box.x0) / 2 / scale), "start");
    text(picture, "x1", box.x1, box.y1 + 13, lab.tick(middle[0] + (box.x1 - box.x0) / 2 / scale), "end");
    text(picture, "x", centre[0], box.y1 + 14, "w₁", "middle");
    text(picture, "y1", box.x0 - 4, box.y0 + 9, lab.tick(middle[1] + half), "end");
    text(picture, "y0", box.x0 - 4, box.y1, lab.tick(middle[1] - half), "end");
    text(picture, "y", box.x0 - 10, centre[1], "w₂", "middle", { transform: `rotate(-90 ${box.x0 - 10} ${centre[1]})` });
    picture.sweep();
  };

  // The root mean square distance of w from its mean.
  const spread = (found) => {
    const mean = [0, 1].map((k) => found.reduce((sum, each) => sum + each.gradient[k] / found.length, 0));
    return Math.sqrt(found.reduce((sum, { gradient }) => sum + ((gradient[0] - mean[0]) ** 2 + (gradient[1] - mean[1]) ** 2) / found.length, 0));
  };

  const write = () => {
    alert.textContent = error;
    tour(lab.write(state, FIELDS));
    contexts();
    sliders.count(state.count, String(state.count));
    sliders.noise(state.noise, state.noise.toFixed(2));
    const spreads = now.clouds.map(({ found }, k) => {
      const values = found.map((each) => each.prediction), low = Math.min(...values), high = Math.max(...values);
      columns[models[k].name].cells.forEach((cell, end) => (cell.textContent = lab.number(end ? high : low)));
      return spread(found);
    });
    const times = spreads[2] / spreads[1], [title, said] = state.count === 1
      ? ["One order of the pairs, one prediction of each model", "Show more orders, and see which models move."]
      : [`lsa1 stays one point; twolayer ${state.count < FEW ? "moves with the order" : "becomes a smear"}`, `The same ten pairs in ${state.count} orders. lsa1 has no positions. Both twolayers have, and move with the order. After training with easy pairs first, w lies ${lab.number(spreads[2])} from its mean (root mean square): ${lab.number(times)} times the ${lab.number(spreads[1])} after training in random order.`];
    lab.say(finding, title, said);
  };

  const ask = lab.frames(draw, () => history.replaceState(null, "", lab.write(state, FIELDS)));
  const anew = () => {
    moved = "nothing";
    ask();
  };
  addEventListener("hashchange", (event) => lab.followed(event, load));
  lab.onScheme(() => ask());
  load(location.hash);
  lab.ordersPage = { draw, now: () => now, state: () => state };
})();
