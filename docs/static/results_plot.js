// Draws a claim on its own scale: the accepted range as a band, seeds as dots, the mean with its interval, the control
// as a cross. smallPlot is the drawing of a row, largePlot that of an open row, with a line and words for each part.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function drawn(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

// --- the axis ---

/** A place for each number of a claim between left and right; logarithmic where its interval is, and all are above 0. */
function axisOf(claim, left, right) {
  const seeds = claim.values.filter(isNumber);
  const ends = [claim.low, claim.high].filter(isNumber);
  const shown = [...seeds, ...ends, ...[claim.mean, claim.mean_low, claim.mean_high].filter(isNumber)];
  if (claim.earlier) shown.push(...[claim.earlier.low, claim.earlier.high].filter(isNumber));
  const positive = shown.filter((value) => value > 0);
  const log = claim.scale === "log" && seeds.every((value) => value > 0) && positive.length > 0;
  const forward = log ? Math.log : (value) => value;
  let places = (log ? positive : shown).map(forward);
  if (!places.length) places = [0, 1];
  let low = Math.min(...places), high = Math.max(...places);
  if (log && claim.low === 0) low -= 0.25 * (high - low || 1); // the range goes on to 0, which this axis does not have
  const span = high - low || Math.abs(high) * 0.1 || 1;
  // a control far away is shown at the edge, so that the seeds stay apart
  if (isNumber(claim.control_mean) && (!log || claim.control_mean > 0)) {
    const control = forward(claim.control_mean);
    if (control > low - 0.8 * span && control < high + 0.8 * span) {
      low = Math.min(low, control);
      high = Math.max(high, control);
    }
  }
  const margin = 0.07 * (high - low || span);
  low -= margin;
  high += margin;
  const at = (value) => {
    if (value === null || value === undefined) return NaN;
    const place = log && value <= 0 ? low - 1 : forward(value);
    return left + ((right - left) * (place - low)) / (high - low);
  };
  const inverse = log ? Math.exp : (value) => value;
  return { at, log, left, right, within: (x) => Math.min(Math.max(x, left), right), low: inverse(low), high: inverse(high) };
}

/** At most seven round numbers on an axis. */
function ticksOf(axis) {
  const { low, high } = axis;
  if (axis.log && high / low > 8) {
    for (const digits of [[1, 2, 5], [1, 3], [1]]) {
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
        for (const digit of digits) ticks.push(Number(`${digit}e${power}`));
      }
      const inside = ticks.filter((tick) => tick >= low && tick <= high);
      if (inside.length <= 7) return inside;
    }
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high)), every = Math.ceil((last - first) / 5);
    return Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, i) => 10 ** (first + i * every));
  }
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step); i <= high / step; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

// --- parts ---

/** Places of dots, moved up and down where they would cover each other. */
function swarm(xs, radius, room) {
  const placed = [];
  const levels = [0];
  for (let y = radius; y <= room; y += radius) levels.push(-y, y);
  for (const x of [...xs].sort((a, b) => a - b)) {
    const near = placed.filter((other) => x - other[0] < 2 * radius);
    const free = levels.find((y) => near.every((other) => (x - other[0]) ** 2 + (y - other[1]) ** 2 >= 3.4 * radius ** 2));
    placed.push([x, free === undefined ? levels[placed.length % levels.length] : free]);
  }
  return placed;
}

function band(axis, low, high, top, bottom, kind) {
  const from = low === null ? axis.left : axis.within(axis.at(low));
  const to = high === null ? axis.right : axis.within(axis.at(high));
  const width = Math.max(to - from, 2);
  return drawn("rect", { class: kind, x: from - (width > to - from ? 1 : 0), y: top, width, height: bottom - top, rx: 2 });
}

/** Values as dots; of a share, whose values are 0 or 1, a dot for each of the two, with how many seeds have it. */
function dots(axis, claim, values, y, room, kind = "seed") {
  const shown = values.filter(isNumber), many = shown.length > 40;
  const radius = kind === "seed" ? (room < 9.5 ? 2.5 : 3) - (many ? 0.7 : 0) : 1.6;
  if (claim.scale === "share" && kind === "seed") {
    return [...new Set(shown)].flatMap((value) => {
      const x = axis.within(axis.at(value)), count = shown.filter((other) => other === value).length;
      const isLeft = x > (axis.left + axis.right) / 2; // words stand inside
      return [drawn("circle", { class: kind, cx: x, cy: y, r: radius + 1 }), text(x + (isLeft ? -8 : 8), y + 3.6, `${count} of ${shown.length}`, isLeft ? "end" : "start", "count-of")];
    });
  }
  const xs = shown.map((value) => axis.within(axis.at(value)));
  return swarm(xs, radius, room).map(([x, dy]) => drawn("circle", { class: kind, cx: x, cy: y + dy, r: radius }));
}

function interval(axis, claim, y) {
  if (!isNumber(claim.mean)) return [];
  const ends = [isNumber(claim.mean_low) ? axis.at(claim.mean_low) : axis.left, isNumber(claim.mean_high) ? axis.at(claim.mean_high) : axis.right];
  const [from, to] = ends.map(axis.within);
  return [
    drawn("line", { class: "interval", x1: from, x2: Math.max(to, from + 1), y1: y, y2: y }),
    drawn("circle", { class: "mean", cx: axis.within(axis.at(claim.mean)), cy: y, r: 3.4 }),
  ];
}

/** The control's cross; beyond the axis it stands at the edge, with an arrow that points on. */
function cross(axis, claim, y) {
  if (!isNumber(claim.control_mean)) return [];
  const place = axis.at(claim.control_mean);
  const beyond = place < axis.left - 1 ? -1 : place > axis.right + 1 ? 1 : 0;
  const x = beyond ? (beyond < 0 ? axis.left + 12 : axis.right - 12) : place;
  const size = 3.6;
  const path = `M${x - size} ${y - size}l${2 * size} ${2 * size}m0 ${-2 * size}l${-2 * size} ${2 * size}`;
  const arrow = beyond ? `M${x + beyond * 7} ${y - 3}l${beyond * 4} 3l${-beyond * 4} 3` : "";
  return [drawn("path", { class: "control", d: path + arrow })];
}

function text(x, y, words, anchor = "middle", kind = "") {
  return drawn("text", { x, y, "text-anchor": anchor, class: kind }, words);
}

// --- drawings ---

/** The drawing of a row; what it shows stands in words beside it. */
function smallPlot(claim) {
  const width = 270, height = 46, axis = axisOf(claim, 4, width - 4);
  const parts = [drawn("line", { class: "axis", x1: 0, x2: width, y1: 32, y2: 32 }), band(axis, claim.low, claim.high, 2, 32, "accepted")];
  const labels = [];
  for (const end of [claim.low, claim.high]) {
    if (end !== null && !(axis.log && end <= 0)) labels.push([axis.at(end), short(end)]);
  }
  if (labels.length === 2 && labels[1][0] - labels[0][0] < 4 + 3 * (labels[0][1].length + labels[1][1].length)) {
    labels.splice(0, 2, [(labels[0][0] + labels[1][0]) / 2, `${labels[0][1]} to ${labels[1][1]}`]);
  }
  for (const [x, words] of labels) {
    const half = 3 * words.length;
    parts.push(text(Math.min(Math.max(x, half), width - half), 43, words));
  }
  if (claim.values.length) {
    parts.push(...cross(axis, claim, 13), ...dots(axis, claim, claim.values, 13, 9), ...interval(axis, claim, 27));
  }
  return drawn("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" }, ...parts);
}

/** The drawing of an open row, as wide as there is room: a line for each part, with its name. */
function largePlot(claim, room) {
  const width = Math.min(Math.max(room, 280), 760), names = width < 500 ? 96 : 128;
  const axis = axisOf(claim, names + 6, width - 8);
  const lines = [["accepted", []]];
  const controls = claim.control_values.filter(isNumber);
  if (claim.earlier) lines.push(["accepted before", (y) => [band(axis, claim.earlier.low, claim.earlier.high, y - 5, y + 5, "before")]]);
  if (claim.values.some(isNumber)) {
    const count = claim.values.filter(isNumber).length;
    lines.push([count === 1 ? "one seed" : `${count} seeds`, (y) => dots(axis, claim, claim.values, y, 10)]);
  }
  if (isNumber(claim.mean)) lines.push([claim.n > 1 ? "mean, interval" : "mean", (y) => interval(axis, claim, y)]);
  if (isNumber(claim.control_mean)) {
    const near = claim.scale === "share" ? [] : controls.filter((value) => axis.at(value) >= axis.left && axis.at(value) <= axis.right);
    lines.push(["control", (y) => [...dots(axis, claim, near, y, 7, "control-seed"), ...cross(axis, claim, y)]]);
  }
  const step = 27, bottom = 6 + step * lines.length;
  const parts = [band(axis, claim.low, claim.high, 6, bottom, "accepted")];
  const edges = [claim.low, claim.high].map((end, i) => (end === null ? (i ? axis.right : axis.left) : axis.within(axis.at(end))));
  const middle = (edges[0] + edges[1]) / 2, half = 3.3 * claim.in_words.accepted.length;
  const centre = Math.min(Math.max(middle, axis.left + half), Math.max(axis.right - half, axis.left + half));
  parts.push(text(centre, 6 + step / 2 + 4, claim.in_words.accepted.split(";")[0].split(" (")[0], "middle", "range"));
  lines.forEach(([name, draw], i) => {
    const y = 6 + step * (i + 0.5);
    parts.push(text(names - 6, y + 4, name, "end", "name"));
    if (i) parts.push(drawn("line", { class: "rule", x1: axis.left, x2: axis.right, y1: y + step / 2, y2: y + step / 2 }), ...draw(y));
  });
  parts.push(drawn("line", { class: "axis", x1: axis.left, x2: axis.right, y1: bottom, y2: bottom }));
  let last = -Infinity;
  for (const tick of ticksOf(axis)) {
    const x = axis.at(tick), words = short(tick);
    if (x - last < 7 * words.length + 6) continue;
    last = x;
    parts.push(drawn("line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 }), text(x, bottom + 16, words));
  }
  const said = `${claim.says}: ${claim.in_words.measured || "not measured"}; accepted: ${claim.in_words.accepted}`;
  const size = { viewBox: `0 0 ${width} ${bottom + 22}`, width, height: bottom + 22 };
  return drawn("svg", { ...size, role: "img", "aria-label": said }, ...parts);
}
