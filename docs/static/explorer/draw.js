// Drawing in SVG: elements that are kept between frames, colours of the page, labels beside points.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});
  const NS = "http://www.w3.org/2000/svg";

  // An element of HTML with attributes and a text; nothing is ever parsed as HTML.
  lab.html = (parent, tag, attributes = {}, text = "") => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    parent.append(made);
    return made;
  };

  // A picture whose elements are named: put() makes or changes one, sweep() removes those that a frame has not put, and
  // lays the others over each other in the order in which they were put. So a frame looks the same after any other.
  lab.Picture = class {
    constructor(parent, width, height, role, label) {
      this.node = document.createElementNS(NS, "svg");
      this.width = width;
      this.height = height;
      for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, role, "aria-label": label }))
        this.node.setAttribute(name, value);
      parent.append(this.node);
      this.known = new Map();
      this.frame = 0;
      this.order = [];
      this.handles = new Set();
    }
    put(name, tag, attributes, text, parent = this.node) {
      let one = this.known.get(name);
      if (one && (one.node.localName !== tag || one.node.parentNode !== parent)) {
        one.node.remove();
        one = undefined;
      }
      if (!one) {
        one = { node: document.createElementNS(NS, tag), values: {}, text: undefined };
        parent.append(one.node);
        this.known.set(name, one);
      }
      one.frame = this.frame;
      this.order.push(one.node);
      for (const key in one.values)
        if (!(key in attributes)) {
          delete one.values[key];
          one.node.removeAttribute(key);
        }
      for (const key in attributes)
        if (one.values[key] !== attributes[key]) {
          one.values[key] = attributes[key];
          one.node.setAttribute(key, attributes[key]);
        }
      if (text !== undefined && one.text !== text) one.node.textContent = one.text = text;
      return one.node;
    }
    begin() {
      this.frame++;
      this.order = [];
    }
    sweep() {
      for (const [name, one] of this.known)
        if (one.frame !== this.frame) {
          one.node.remove();
          this.known.delete(name);
        }
      const before = new Map();
      for (const node of this.order) {
        const parent = node.parentNode, last = before.get(parent) || null;
        if (node.previousSibling !== last) parent.insertBefore(node, last ? last.nextSibling : parent.firstChild);
        before.set(parent, node);
      }
    }
  };

  const NAMES = ["ink", "muted", "line", "paper", "layer", "gd", "plus", "ridge", "low", "middle", "high", "valley"];

  // The colours of the page's scheme, as #rrggbb.
  lab.colours = (element) => {
    const style = getComputedStyle(element);
    return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--ex-${name}`).trim()]));
  };

  lab.mixed = (one, two, share) => {
    const part = (colour, place) => parseInt(colour.slice(1 + 2 * place, 3 + 2 * place), 16);
    const mix = [0, 1, 2].map((k) => Math.round(part(one, k) + share * (part(two, k) - part(one, k))));
    return `#${mix.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
  };

  // Blue below zero, red above, saturated at 1.
  lab.signed = (colours, value) =>
    lab.mixed(colours.middle, value < 0 ? colours.low : colours.high, Math.min(1, Math.abs(value)));

  // A number of three significant digits, with a true minus sign.
  lab.number = (value) => {
    if (!Number.isFinite(value)) return "diverges";
    const size = Math.abs(value), digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
    const small = size < 1e-9 ? "0" : size < 5e-4 ? value.toExponential(0) : value.toPrecision(3);
    const text = size >= 1e6 ? value.toExponential(0) : size >= 1 ? value.toFixed(digits) : small;
    return (Number(text) === 0 ? "0" : text).replaceAll("-", "−").replace("e+", "e");
  };

  // The same at the end of an axis.
  lab.tick = (value) => (Math.abs(value) < 10 ? String(+value.toFixed(Math.abs(value) < 1 ? 2 : 1)).replace("-", "−") : lab.number(value));

  const named = (picture, number, x, y, anchor, names, colours) => {
    const text = picture.put(`label${number}`, "text", {
      x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor, "font-size": 12, "font-weight": 600,
      stroke: colours.paper, "stroke-width": 3, "paint-order": "stroke", "stroke-linejoin": "round",
      "pointer-events": "none",
    });
    const said = names.map((each) => each.name).join("|") + colours.paper;
    if (text.dataset.said === said) return;
    text.dataset.said = said;
    text.textContent = "";
    names.forEach((each, place) => {
      for (const [word, fill] of [[place ? " ≈ " : "", colours.muted], [each.name, each.colour]]) {
        const part = document.createElementNS(NS, "tspan");
        part.setAttribute("fill", fill);
        part.textContent = word;
        text.append(part);
      }
    });
  };

  // Names beside points, where they hide the fewest marks [x, y, radius] and other names; those of points that coincide
  // are joined by ≈.
  lab.tags = (picture, points, box, colours, marks = []) => {
    const joined = [];
    for (const point of points) {
      const same = joined.find((one) => Math.hypot(one.x - point.x, one.y - point.y) < 7);
      if (same) same.names.push(point);
      else joined.push({ x: point.x, y: point.y, names: [point] });
    }
    const hidden = [...points.map((each) => [each.x, each.y, 8]), ...marks], taken = [];
    joined.forEach((one, number) => {
      const width = 7.5 * one.names.map((each) => each.name).join(" ≈ ").length;
      let best = null, least = Infinity;
      for (const away of [12, 20, 32, 50])
        for (const [x, y, anchor] of [[1, 0, 0], [-1, 0, 1], [0, -1, 0.5], [0, 1, 0.5], [0.7, -0.7, 0], [0.7, 0.7, 0], [-0.7, -0.7, 1], [-0.7, 0.7, 1]]) {
          const x0 = one.x + away * x - anchor * width, y1 = one.y + 5 + away * (y > 0 ? 1.2 * y : y), x1 = x0 + width, y0 = y1 - 13;
          if (x0 < box.x0 + 2 || x1 > box.x1 - 2 || y0 < box.y0 + 1 || y1 > box.y1 - 1) continue;
          let cost = away / 24;
          for (let k = 0; k < hidden.length && cost < least; k++) {
            const mark = hidden[k], r = mark[2];
            if (mark[0] + r > x0 && mark[0] - r < x1 && mark[1] + r > y0 && mark[1] - r < y1) cost += 1;
          }
          for (const [left, top, right, bottom] of taken) if (right > x0 && left < x1 && bottom > y0 && top < y1) cost += 6;
          if (cost < least) [best, least] = [[x0, y0, x1, y1, anchor], cost];
        }
      if (!best) best = [one.x - width - 12, one.y - 9, one.x - 12, one.y + 4, 1];
      taken.push(best);
      const [x0, , x1, y1, anchor] = best;
      named(picture, number, x0 + anchor * (x1 - x0), y1 - 1, ["start", "middle", "end"][2 * anchor], one.names, colours);
    });
  };

  // Names right of the ends of curves, below each other.
  lab.ends = (picture, points, x, box, colours) => {
    let floor = box.y0 + 4;
    [...points].sort((one, two) => one.y - two.y).forEach((each, number, all) => {
      const y = Math.max(floor, Math.min(each.y + 4, box.y1 + 4 - 14 * (all.length - 1 - number)));
      floor = y + 14;
      named(picture, number, x, y, "start", [each], colours);
    });
  };

  lab.line = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
})();
