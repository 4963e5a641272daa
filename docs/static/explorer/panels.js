// The five pictures of the explorer. Each gets a view: the run, its settings, the context, and the paths of w.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});

  const axis = (picture, name, x, y, text, anchor, colours, more = {}) =>
    picture.put(name, "text", { x, y, "text-anchor": anchor, "font-size": 11, fill: colours.muted, ...more }, text);

  // A point that is dragged, by pointer or arrow keys: act([x, y]) moves it to a place of the picture. The point that is
  // nearest to the pointer is taken, because the areas that a finger can hit overlap.
  lab.handle = (picture, name, at, size, label, value, act) => {
    const group = picture.put(`${name}:g`, "g", {
      class: "handle", tabindex: 0, role: "slider", "aria-label": label, "aria-valuenow": value[0],
      "aria-valuetext": value[1], transform: `translate(${at[0].toFixed(1)} ${at[1].toFixed(1)})`,
    });
    picture.put(`${name}:hit`, "circle", { class: "hit", r: 15, fill: "transparent" }, undefined, group);
    if (!group.act) {
      let from = null;
      const place = (event) => {
        const matrix = picture.node.getScreenCTM();
        return [(event.clientX - matrix.e) / matrix.a, (event.clientY - matrix.f) / matrix.d];
      };
      picture.handles.add(group);
      group.hold = (here, pointer) => {
        from = [group.at[0] - here[0], group.at[1] - here[1]];
        group.setPointerCapture(pointer);
        group.focus({ preventScroll: true });
      };
      group.addEventListener("pointerdown", (event) => {
        const here = place(event), away = (one) => Math.hypot(one.at[0] - here[0], one.at[1] - here[1]);
        let nearest = group;
        for (const one of picture.handles) {
          if (!one.isConnected) picture.handles.delete(one);
          else if (away(one) < away(nearest)) nearest = one;
        }
        nearest.hold(here, event.pointerId);
        event.preventDefault();
      });
      // Where touch-action is not known of parts of a picture, this keeps the page from scrolling away.
      group.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
      group.addEventListener("pointermove", (event) => {
        if (!from) return;
        const here = place(event);
        group.act([here[0] + from[0], here[1] + from[1]]);
      });
      for (const end of ["pointerup", "pointercancel"]) group.addEventListener(end, () => (from = null));
      group.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
        const size = event.shiftKey ? 20 : 5;
        group.act([group.at[0] + size * step[0], group.at[1] + size * step[1]]);
        event.preventDefault();
        event.stopPropagation();
      });
    }
    group.at = at;
    group.act = act;
    return group;
  };

  const clamp = (value, least, most) => Math.min(most, Math.max(least, value));

  // The context: inputs in the plane, labels as colours; behind, what the layer predicts there. In 1-D: y over x.
  lab.drawContext = (picture, view, change) => {
    const { colours, run } = view, box = { x0: 34, x1: 334, y0: 8, y1: 308 }, unit = run.inputs === "gaussian" ? 3 : 0.6;
    const half = unit * run.range * Math.max(1, view.settings.range / run.range);
    const toX = (value) => box.x0 + ((value + half) / (2 * half)) * (box.x1 - box.x0);
    const toY = (value, most = half) => box.y1 - ((value + most) / (2 * most)) * (box.y1 - box.y0);
    const fromX = (pixel) => ((clamp(pixel, box.x0, box.x1) - box.x0) / (box.x1 - box.x0)) * 2 * half - half;
    const fromY = (pixel, most = half) => ((box.y1 - clamp(pixel, box.y0, box.y1)) / (box.y1 - box.y0)) * 2 * most - most;
    const inside = ([x, y]) => [clamp(x, box.x0, box.x1), clamp(y, box.y0, box.y1)]; // what a link puts further out
    const plane = run.dim > 1, count = view.y.length, r = view.settings.range, end = view.settings.depth;
    const tall = view.tall, biggest = plane ? view.tall : 1;
    picture.begin();
    if (plane) {
      const w = view.project(view.paths.layer[end]), size = Math.hypot(...w) || 1e-9, reach = biggest / size;
      const gradient = picture.put("gradient", "linearGradient", {
        id: "predicted", gradientUnits: "userSpaceOnUse",
        x1: toX((-w[0] / size) * reach), y1: toY((-w[1] / size) * reach), x2: toX((w[0] / size) * reach), y2: toY((w[1] / size) * reach),
      });
      [colours.low, colours.middle, colours.high].forEach((colour, k) =>
        picture.put(`stop${k}`, "stop", { offset: k / 2, "stop-color": colour }, undefined, gradient));
    }
    picture.put("field", "rect", {
      x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0, stroke: colours.line,
      fill: plane ? "url(#predicted)" : colours.paper, "fill-opacity": plane ? 0.5 : 1,
    });
    const known = (run.inputs === "gaussian" ? 2 : 0.5) * run.range;
    if (half > 1.25 * known && plane) {
      picture.put("known", "rect", {
        x: toX(-known), y: toY(known), width: toX(known) - toX(-known), height: toY(-known) - toY(known),
        fill: "none", stroke: colours.ink, "stroke-dasharray": "4 3",
      });
    } else if (half > 1.25 * known) {
      picture.put("known", "rect", { x: toX(-known), y: box.y0, width: toX(known) - toX(-known), height: box.y1 - box.y0, fill: colours.line, "fill-opacity": 0.35 });
    }
    axis(picture, "x0", box.x0, box.y1 + 13, lab.tick(-half), "start", colours);
    axis(picture, "x1", box.x1, box.y1 + 13, lab.tick(half), "end", colours);
    axis(picture, "x", (box.x0 + box.x1) / 2, box.y1 + 14, `${run.dim > 2 ? "x along the true w" : plane ? "x₁" : "x"}${half > 1.25 * known ? ` (${plane ? "dashed" : "grey"}: inputs of the training)` : ""}`, "middle", colours);
    axis(picture, "y0", box.x0 - 4, box.y1, lab.tick(plane ? -half : -tall), "end", colours);
    axis(picture, "y1", box.x0 - 4, box.y0 + 9, lab.tick(plane ? half : tall), "end", colours);
    const middle = (box.y0 + box.y1) / 2;
    axis(picture, "y", box.x0 - 10, middle, run.dim > 2 ? "x across it" : plane ? "x₂" : "label y", "middle", colours, {
      transform: `rotate(-90 ${box.x0 - 10} ${middle})`,
    });
    if (!plane) {
      const lines = [["ridge", view.paths.ridge, colours.ridge, 2], ["gd", view.paths.gd[end], colours.gd, 5], ["layer", view.paths.layer[end], colours.layer, 2]];
      for (const [name, w, colour, wide] of lines) {
        const reach = Math.min(half, Math.abs(tall / (w[0] || 1e-9)));
        picture.put(`line:${name}`, "path", {
          d: lab.line([[toX(-reach), toY(-reach * w[0], tall)], [toX(reach), toY(reach * w[0], tall)]]),
          stroke: colour, "stroke-width": wide, fill: "none", "stroke-opacity": name === "gd" ? 0.6 : 1,
        });
      }
    }
    for (let i = 0; i < count; i++) {
      const at = plane ? view.projected(view.x, i) : [view.x[i], view.y[i]];
      const fill = lab.signed(colours, view.y[i] / biggest);
      const pixel = inside([toX(at[0]), plane ? toY(at[1]) : toY(at[1], tall)]);
      const said = `${plane ? at.map((each) => each.toFixed(2)).join(", ") : at[0].toFixed(2)}; label ${view.y[i].toFixed(2)}`;
      const group = lab.handle(picture, `pair${i}`, pixel, 8, `pair ${i + 1}: arrow keys move it`, [at[0].toFixed(2), said], (to) =>
        change.pair(i, plane ? [fromX(to[0]) / r, fromY(to[1]) / r] : [fromX(to[0]) / r, fromY(to[1], tall)]));
      picture.put(`pair${i}:dot`, "circle", { class: "ring", r: count > 20 ? 6 : 8, fill, stroke: colours.ink, "stroke-width": 1.2 }, undefined, group);
    }
    const at = plane ? view.projected(view.query, 0) : [view.query[0], 0];
    const group = lab.handle(picture, "query", inside([toX(at[0]), plane ? toY(at[1]) : toY(0, tall)]), 8, "query: arrow keys move it",
      [at[0].toFixed(2), at.map((each) => each.toFixed(2)).join(", ")], (to) =>
        change.query(plane ? [fromX(to[0]) / r, fromY(to[1]) / r] : [fromX(to[0]) / r]));
    picture.put("query:dot", "circle", { class: "ring", r: 9, fill: "none", stroke: colours.ink, "stroke-width": 1.8, "stroke-dasharray": "3 2.5" }, undefined, group);
    picture.put("query:text", "text", { x: 0, y: 3.5, "text-anchor": "middle", "font-size": 10, "font-weight": 700, fill: colours.ink, "pointer-events": "none" }, "?", group);
    picture.sweep();
  };

  lab.WIDE = 380 / 300; // of the picture of w: its width by its height
  const LEVELS = [0.015, 0.06, 0.15, 0.32, 0.6, 1, 1.6, 2.5, 4];

  // The loss of this context over w, and where layers, descent and ridge are in it.
  lab.drawLandscape = (picture, view, change) => {
    if (view.run.dim === 1) return parabola(picture, view, change);
    const { colours, paths } = view, box = { x0: 30, x1: 410, y0: 8, y1: 308 };
    const half = view.reach, scale = (box.y1 - box.y0) / (2 * half), centre = [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2];
    const to = (w) => [centre[0] + scale * w[0], centre[1] - scale * w[1]];
    const edge = [(box.x1 - box.x0) / 2 - 9, (box.y1 - box.y0) / 2 - 9];
    const within = ([x, y]) => { // at the edge in the same direction, if it is outside
      const times = Math.max(1, Math.abs(x - centre[0]) / edge[0], Math.abs(y - centre[1]) / edge[1]);
      return [centre[0] + (x - centre[0]) / times, centre[1] + (y - centre[1]) / times];
    };
    const isIn = ([x, y]) => x >= box.x0 && x <= box.x1 && y >= box.y0 && y <= box.y1;
    picture.begin();
    const clip = picture.put("clip", "clipPath", { id: "inside" });
    picture.put("clip:rect", "rect", { x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0 }, undefined, clip);
    picture.put("paper", "rect", { x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0, fill: colours.paper, stroke: colours.line });
    const rings = picture.put("rings", "g", { "clip-path": "url(#inside)" });
    const { values, vectors } = lab.eigen(view.plane.s, 2), lowest = view.plane.minimum, at = to(lowest);
    const start = 0.5 * lab.times(view.plane.s, lowest, 2).reduce((sum, each, k) => sum + each * lowest[k], 0);
    const least = 1e-4 * Math.max(...values, 1e-12), angle = (-Math.atan2(vectors[2], vectors[0]) * 180) / Math.PI;
    for (let k = LEVELS.length - 1; k >= 0; k--) {
      const radius = (value) => Math.min(5e3, scale * Math.sqrt((2 * LEVELS[k] * (start || 1e-9)) / Math.max(value, least)));
      picture.put(`level${k}`, "ellipse", {
        cx: at[0].toFixed(1), cy: at[1].toFixed(1), rx: radius(values[0]).toFixed(1), ry: radius(values[1]).toFixed(1),
        transform: `rotate(${angle.toFixed(2)} ${at[0].toFixed(1)} ${at[1].toFixed(1)})`,
        fill: colours.valley, "fill-opacity": 0.07, stroke: colours.valley, "stroke-opacity": LEVELS[k] === 1 ? 0.9 : 0.35,
        "stroke-width": LEVELS[k] === 1 ? 1.4 : 0.8,
      }, undefined, rings);
    }
    const ends = [], marks = [], draw = (name, said, path, colour, dash, mark) => {
      const points = path.map((w) => to(view.project(w)));
      picture.put(`${name}:path`, "path", {
        d: lab.line(points.map(([x, y]) => [clamp(x, -2e3, 3e3), clamp(y, -2e3, 3e3)])), fill: "none", stroke: colour,
        "stroke-width": name === "gd" ? 3.5 : 1.8, "stroke-opacity": name === "gd" ? 0.55 : 1, "stroke-dasharray": dash, "clip-path": "url(#inside)",
      });
      points.slice(1).forEach((point, k) => {
        const last = k === points.length - 2;
        marks.push([...within(point), 5]);
        mark(`${name}${k}`, within(point), last, colour, isIn(point) ? 1 : 0.45);
      });
      const last = points[points.length - 1], out = !isIn(last);
      const [x, y] = within(last);
      ends.push({ x, y, name: out ? `${said} out there: |w| = ${lab.number(view.length(path[path.length - 1]))}` : said, colour });
    };
    const dot = (name, [cx, cy], last, fill, opacity) => picture.put(name, "circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: last ? 5 : 3, fill, opacity });
    const square = (name, [x, y], last, fill, opacity) => {
      const size = last ? 8 : 5;
      picture.put(name, "rect", { x: (x - size / 2).toFixed(1), y: (y - size / 2).toFixed(1), width: size, height: size, fill, opacity });
    };
    const ring = (name, [cx, cy], last, stroke, opacity) => picture.put(name, "circle", {
      cx: cx.toFixed(1), cy: cy.toFixed(1), r: last ? 8 : 5.5, fill: "none", stroke, "stroke-width": last ? 2.4 : 1.5, opacity,
    });
    const depth = view.settings.depth;
    draw("gd", "GD", paths.gd, colours.gd, "", dot);
    if (view.settings.plus) draw("plus", "GD++", paths.gdpp, colours.plus, "", square);
    draw("layer", depth > 1 ? "layers" : "layer", paths.layer, colours.layer, "5 3", ring);
    const ridge = within(to(view.project(paths.ridge)));
    picture.put("ridge", "path", { d: `M${ridge[0]} ${ridge[1] - 7}l7 7l-7 7l-7 -7z`, fill: colours.ridge });
    ends.push({ x: ridge[0], y: ridge[1], name: "ridge", colour: colours.ridge });
    const begin = to([0, 0]);
    picture.put("start", "circle", { cx: begin[0], cy: begin[1], r: 3.5, fill: colours.ink });
    ends.push({ x: begin[0], y: begin[1], name: "start", colour: colours.ink });
    const truth = to(view.project(view.w)), cross = { stroke: colours.ink, "stroke-width": 2, d: "M-8 0H8M0 -8V8", "pointer-events": "none", class: "ring" };
    if (view.run.dim === 2) {
      const group = lab.handle(picture, "truth", within(truth), 8, "true w: arrow keys move it",
        [view.w[0].toFixed(2), Array.from(view.w, (each) => each.toFixed(2)).join(", ")],
        (moved) => change.truth([0, 1].map((k) => (clamp((moved[k] - centre[k]) * (k ? -1 : 1), -edge[k], edge[k])) / scale)));
      picture.put("truth:cross", "path", cross, undefined, group);
    } else picture.put("truth:cross", "path", { ...cross, transform: `translate(${within(truth)})` });
    ends.push({ x: within(truth)[0], y: within(truth)[1], name: "true w", colour: colours.ink });
    lab.tags(picture, ends, box, colours, marks);
    const wide = half * lab.WIDE, plain = view.run.dim === 2;
    axis(picture, "x0", box.x0, box.y1 + 13, lab.tick(-wide), "start", colours);
    axis(picture, "x1", box.x1, box.y1 + 13, lab.tick(wide), "end", colours);
    axis(picture, "x", centre[0], box.y1 + 14, plain ? "w₁" : "w along the true w", "middle", colours);
    axis(picture, "y1", box.x0 - 4, box.y0 + 9, lab.tick(half), "end", colours);
    axis(picture, "y0", box.x0 - 4, box.y1, lab.tick(-half), "end", colours);
    axis(picture, "y", box.x0 - 10, centre[1], plain ? "w₂" : "w across it", "middle", colours, { transform: `rotate(-90 ${box.x0 - 10} ${centre[1]})` });
    picture.sweep();
  };

  // In 1-D the loss over w is a curve.
  const parabola = (picture, view, change) => {
    const { colours, paths } = view, box = { x0: 34, x1: 410, y0: 8, y1: 292 }, half = view.reach;
    const loss = (w) => {
      let sum = 0;
      for (let i = 0; i < view.y.length; i++) sum += (w * view.x[i] - view.y[i]) ** 2 / (2 * view.y.length);
      return sum;
    };
    const most = 1.5 * Math.max(loss(0), 1e-6);
    const toX = (w) => box.x0 + ((clamp(w, -half, half) + half) / (2 * half)) * (box.x1 - box.x0);
    const to = (w) => [toX(w), box.y1 - (Math.min(loss(w), most) / most) * (box.y1 - box.y0 - 14)];
    picture.begin();
    picture.put("paper", "rect", { x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0, fill: colours.paper, stroke: colours.line });
    picture.put("curve", "path", {
      d: lab.line(Array.from({ length: 121 }, (_, k) => half * (k / 60 - 1)).filter((w) => loss(w) <= most).map(to)),
      stroke: colours.valley, "stroke-width": 2, fill: "none",
    });
    const ends = [], curve = Array.from({ length: 61 }, (_, k) => half * (k / 30 - 1)).filter((w) => loss(w) <= most).map((w) => [...to(w), 2]);
    const mark = (name, said, path, colour, size, hollow) => {
      path.slice(1).forEach((w, k) => {
        const [cx, cy] = to(w[0]), last = k === path.length - 2;
        picture.put(`${name}${k}`, "circle", {
          cx: cx.toFixed(1), cy: cy.toFixed(1), r: last ? size : 0.7 * size, fill: hollow ? "none" : colour, stroke: hollow ? colour : "none", "stroke-width": 2.2,
        });
      });
      const [x, y] = to(path[path.length - 1][0]);
      ends.push({ x, y, name: said, colour });
    };
    mark("gd", "GD", paths.gd, colours.gd, 5, false);
    if (view.settings.plus) mark("plus", "GD++", paths.gdpp, colours.plus, 4, false);
    mark("layer", view.settings.depth > 1 ? "layers" : "layer", paths.layer, colours.layer, 9, true);
    mark("ridge", "ridge", [null, paths.ridge], colours.ridge, 4, false);
    mark("start", "start", [null, [0]], colours.ink, 3.5, false);
    const at = [toX(view.w[0]), box.y1 + 1];
    const group = lab.handle(picture, "truth", at, 8, "true w: arrow keys move it", [view.w[0].toFixed(2), view.w[0].toFixed(2)], (moved) =>
      change.truth([((clamp(moved[0], box.x0, box.x1) - box.x0) / (box.x1 - box.x0)) * 2 * half - half]));
    picture.put("truth:cross", "path", { class: "ring", d: "M0 -2L6 9H-6z", fill: colours.ink }, undefined, group);
    ends.push({ x: at[0], y: at[1] - 4, name: "true w", colour: colours.ink });
    lab.tags(picture, ends, box, colours, curve);
    axis(picture, "x0", box.x0, box.y1 + 24, lab.tick(-half), "start", colours);
    axis(picture, "x1", box.x1, box.y1 + 24, lab.tick(half), "end", colours);
    axis(picture, "x", (box.x0 + box.x1) / 2, box.y1 + 25, "w", "middle", colours);
    axis(picture, "y", box.x0 - 10, 150, "loss of this context", "middle", colours, { transform: `rotate(-90 ${box.x0 - 10} 150)` });
    picture.sweep();
  };

  // The mean loss at each checkpoint, over the logarithm of the step.
  lab.drawTraining = (picture, view, losses, level) => {
    const { colours, run } = view, box = { x0: 40, x1: 330, y0: 12, y1: 170 }, most = 1.08 * Math.max(level, ...losses);
    const first = Math.log10(Math.max(1, run.steps.find((step) => step > 0) || 1)), last = Math.log10(Math.max(10, run.steps[run.steps.length - 1]));
    const toX = (step) => box.x0 + ((Math.log10(Math.max(step, 10 ** first)) - first) / (last - first || 1)) * (box.x1 - box.x0);
    const toY = (loss) => box.y1 - (loss / most) * (box.y1 - box.y0);
    picture.begin();
    picture.put("paper", "rect", { x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0, fill: colours.paper, stroke: colours.line });
    picture.put("gd", "path", { d: `M${box.x0} ${toY(level)}H${box.x1}`, stroke: colours.gd, "stroke-width": 2, "stroke-dasharray": "5 3" });
    const steps = view.settings.depth === 1 ? "one step of GD" : `${view.settings.depth} steps of GD`;
    const places = [[box.x0 + 5, -5], [box.x0 + 5, 14], [box.x1 - 105, -5], [box.x1 - 105, 14], [box.x0 + 95, -5]].filter(([, y]) => toY(level) + y < box.y1 && toY(level) + y > box.y0 + 11);
    const hides = ([x, y]) => losses.filter((loss, k) => toX(run.steps[k]) > x - 8 && toX(run.steps[k]) < x + 108 && Math.abs(toY(loss) - toY(level) - y + 4) < 10).length;
    const [x, y] = places.reduce((best, one) => (hides(one) < hides(best) ? one : best), places[0] || [box.x0 + 5, -5]);
    picture.put("gd:text", "text", { x, y: toY(level) + y, "font-size": 11, fill: colours.gd, "font-weight": 600 }, steps);
    picture.put("layer", "path", { d: lab.line(losses.map((loss, k) => [toX(run.steps[k]), toY(loss)])), stroke: colours.layer, "stroke-width": 2, fill: "none" });
    picture.put("now", "circle", { cx: toX(run.steps[view.step]), cy: toY(losses[view.step]), r: 5.5, fill: colours.layer, stroke: colours.paper, "stroke-width": 1.5 });
    axis(picture, "y1", box.x0 - 4, box.y0 + 9, lab.tick(most), "end", colours);
    axis(picture, "y0", box.x0 - 4, box.y1, "0", "end", colours);
    axis(picture, "y", box.x0 - 12, 95, "mean loss", "middle", colours, { transform: `rotate(-90 ${box.x0 - 12} 95)` });
    axis(picture, "x0", box.x0, box.y1 + 14, String(Math.round(10 ** first)), "start", colours);
    axis(picture, "x1", box.x1, box.y1 + 14, String(run.steps[run.steps.length - 1]), "end", colours);
    axis(picture, "x", (box.x0 + box.x1) / 2, box.y1 + 14, "training step (log)", "middle", colours);
    picture.sweep();
  };

  // The weights now, and below them gradient descent's construction, scaled to the same size.
  lab.drawWeights = (picture, view) => {
    const { colours, run, weights } = view, width = run.dim + 1, size = width * width, side = 118 / width, heads = run.heads;
    const layer = (view.settings.depth - 1) % (weights.length / (2 * size * heads)), start = 2 * size * heads * layer;
    const scores = weights.subarray(start, start + size), values = weights.subarray(start + size, start + 2 * size);
    const norm = (matrix) => Math.sqrt(matrix.reduce((sum, each) => sum + each * each, 0)) || 1e-9;
    const balance = Math.sqrt(norm(values) / norm(scores)), single = weights.length === 2 * size && !run.recurrent && view.settings.depth === 1;
    const trace = Array.from({ length: run.dim }, (_, k) => scores[k * width + k]).reduce((sum, each) => sum + each, 0);
    const sign = trace < 0 ? -1 : 1, step = Math.sqrt(lab.bestStep(run.dim, run.pairs, run.inputs, run.range, run.scale, 0));
    const wanted = [new Float64Array(size), new Float64Array(size)];
    for (let k = 0; k < run.dim; k++) wanted[0][k * width + k] = step * run.dim ** -0.25;
    wanted[1][size - 1] = -step * run.dim ** 0.25;
    const shown = [[scores, sign * balance], [values, sign / balance], [wanted[0], 1], [wanted[1], 1]];
    const most = Math.max(...shown.map(([matrix, scale]) => Math.max(...matrix.map((each) => Math.abs(scale * each)))), 0.3);
    picture.begin();
    shown.forEach(([matrix, scale], place) => {
      const x0 = place % 2 ? 222 : 92, y0 = place < 2 ? 20 : 166;
      for (let i = 0; i < size; i++) {
        const row = Math.floor(i / width), column = i % width, value = scale * matrix[i];
        const unread = single && (place % 2 ? row < run.dim : column === run.dim);
        picture.put(`${place}:${i}`, "rect", {
          x: (x0 + column * side).toFixed(1), y: (y0 + row * side).toFixed(1), width: (side - 1).toFixed(1), height: (side - 1).toFixed(1),
          rx: 2, fill: lab.signed(colours, value / most), "fill-opacity": unread ? 0.35 : 1, stroke: colours.line, "stroke-width": 0.6,
        });
        if (width < 4 && !unread)
          picture.put(`${place}:${i}:text`, "text", {
            x: (x0 + (column + 0.5) * side).toFixed(1), y: (y0 + (row + 0.5) * side + 4).toFixed(1), "text-anchor": "middle", "font-size": 12,
            fill: Math.abs(value) > 0.55 * most && view.light ? "#ffffff" : colours.ink,
          }, (Math.abs(value) < 0.005 ? "0" : value.toFixed(2)).replace("-", "−"));
      }
    });
    axis(picture, "keys", 151, 13, "scores: W_Kᵀ W_Q", "middle", colours);
    axis(picture, "values", 281, 13, "values: P W_V", "middle", colours);
    [["now", "the layer", 74, colours.layer], ["gd", "one step", 216, colours.gd], ["gd2", "of GD", 231, colours.gd]].forEach(([name, text, y, fill]) =>
      axis(picture, name, 86, y, text, "end", colours, { fill, "font-weight": 600, "font-size": 12 }));
    picture.sweep();
  };

  // Mean losses after 0, 1, 2, ... layers, and after as many steps of each algorithm.
  lab.drawDepth = (picture, view, losses) => {
    const { colours } = view, box = { x0: 54, x1: 296, y0: 18, y1: 290 }, count = losses.layer.length;
    const shown = [["gd", "GD", losses.gd, colours.gd], ["layer", "layers", losses.layer, colours.layer]];
    if (view.settings.plus) shown.push(["plus", "GD++", losses.gdpp, colours.plus]);
    const all = shown.flatMap(([, , values]) => [...values]).concat(losses.ridge > 1e-9 ? losses.ridge : []).filter((each) => each > 0);
    const most = Math.min(Math.log10(Math.max(...all)), Math.log10(losses.gd[0]) + 2) + 0.15, least = Math.max(Math.log10(Math.min(...all)), most - 6) - 0.15;
    const isOff = (loss) => loss > 0 && (Math.log10(loss) > most || Math.log10(loss) < least);
    const toX = (k) => box.x0 + (k / (count - 1)) * (box.x1 - box.x0);
    const toY = (loss) => box.y1 - ((clamp(Math.log10(Math.max(loss, 1e-12)), least, most) - least) / (most - least)) * (box.y1 - box.y0);
    picture.begin();
    picture.put("paper", "rect", { x: box.x0, y: box.y0, width: box.x1 - box.x0, height: box.y1 - box.y0, fill: colours.paper, stroke: colours.line });
    for (let power = Math.ceil(least); power <= most; power++) {
      const y = toY(10 ** power);
      picture.put(`tick${power}`, "path", { d: `M${box.x0} ${y}H${box.x1}`, stroke: colours.line, "stroke-width": 0.7 });
      axis(picture, `tick${power}:text`, box.x0 - 4, y + 4, power < -2 ? `1e${power}`.replace("-", "−") : String(10 ** power).slice(0, 5), "end", colours);
    }
    const chosen = toX(view.settings.depth);
    picture.put("chosen", "path", { d: `M${chosen} ${box.y0}V${box.y1}`, stroke: colours.muted, "stroke-dasharray": "2 3" });
    const ends = [], level = losses.ridge > 1e-9 ? toY(losses.ridge) : box.y1;
    picture.put("ridge", "path", { d: `M${box.x0} ${level}H${box.x1}`, stroke: colours.ridge, "stroke-width": 2 });
    ends.push({ x: box.x1, y: level, name: losses.ridge > 1e-9 ? "ridge" : "ridge: 0", colour: colours.ridge });
    for (const [name, said, values, colour] of shown) {
      const points = Array.from(values, (loss, k) => [toX(k), toY(loss)]), mine = name === "layer";
      picture.put(`${name}:path`, "path", { d: lab.line(points), stroke: colour, "stroke-width": 1.8, fill: "none" });
      points.forEach(([cx, cy], k) => isOff(values[k]) ? picture.put(`${name}${k}:off`, "path", {
        d: Math.log10(values[k]) > most ? `M${(cx - 5).toFixed(1)} ${cy + 4}l5 -9l5 9z` : `M${(cx - 5).toFixed(1)} ${cy - 4}l5 9l5 -9z`, fill: mine ? colours.paper : colour, stroke: colour, "stroke-width": 1.4,
      }) : picture.put(`${name}${k}`, "circle", {
        cx: cx.toFixed(1), cy: cy.toFixed(1), r: (mine ? 5 : 2.6) + (k === view.settings.depth ? 1.4 : 0), fill: mine ? "none" : colour, stroke: mine ? colour : "none", "stroke-width": 1.6,
      }));
      const end = points[points.length - 1];
      ends.push({ x: end[0], y: end[1], name: said, colour });
    }
    lab.ends(picture, ends, box.x1 + 10, box, colours);
    if (shown.some(([, , values]) => values.some(isOff))) axis(picture, "off", box.x0, box.y0 - 7, "▲▼ beyond the axis", "start", colours);
    for (let k = 0; k < count; k += count > 8 ? 3 : 1) axis(picture, `x${k}`, toX(k), box.y1 + 14, String(k), "middle", colours);
    axis(picture, "x", (box.x0 + box.x1) / 2, box.y1 + 28, "layers, or steps", "middle", colours);
    axis(picture, "y", box.x0 - 42, 150, "mean loss (log)", "middle", colours, { transform: `rotate(-90 ${box.x0 - 42} 150)` });
    picture.sweep();
  };
})();
