// What a linear stack, gradient descent, GD++ and ridge predict on a context: w of the prediction w.x, in float64.
// Matrices are flat arrays by rows. scripts/export_explorer.py makes the runs, and a test compares all with Python.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});

  // A generator of uniform numbers in [0, 1) from a seed: mulberry32.
  lab.uniform = (seed) => {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  };

  // Normal numbers by Box and Muller.
  lab.normal = (uniform) => () =>
    Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());

  // A context of N pairs: x [N D], w [D], noise e [N] of variance 1, query q [D]; inputs have range 1.
  lab.draw = (seed, pairs, dim, inputs, scale) => {
    const uniform = lab.uniform(seed), normal = lab.normal(uniform);
    const input = inputs === "gaussian" ? normal : () => uniform() - 0.5;
    const filled = (count, next) => Float64Array.from({ length: count }, next);
    const w = filled(dim, () => scale * normal()), q = filled(dim, input);
    const x = new Float64Array(pairs * dim), e = new Float64Array(pairs);
    for (let i = 0; i < pairs; i++) { // pair by pair, so that more pairs leave the first ones as they are
      for (let k = 0; k < dim; k++) x[i * dim + k] = input();
      e[i] = normal();
    }
    return { x, w, e, q };
  };

  // y = w.x + noise.
  lab.labels = (x, w, e, noise, dim) => {
    const y = new Float64Array(e.length);
    for (let i = 0; i < e.length; i++) {
      y[i] = noise * e[i];
      for (let k = 0; k < dim; k++) y[i] += w[k] * x[i * dim + k];
    }
    return y;
  };

  // C = sum of (x, y)(x, y)^T [W, W], in which S = X^T X, b = X^T y and y.y stand.
  lab.moments = (x, y, dim) => {
    const width = dim + 1, c = new Float64Array(width * width);
    for (let i = 0; i < y.length; i++)
      for (let a = 0; a < width; a++) {
        const left = a < dim ? x[i * dim + a] : y[i];
        for (let b = 0; b < width; b++) c[a * width + b] += left * (b < dim ? x[i * dim + b] : y[i]);
      }
    return c;
  };

  lab.multiply = (a, b, n) => {
    const out = new Float64Array(n * n);
    for (let i = 0; i < n; i++)
      for (let k = 0; k < n; k++) {
        const left = a[i * n + k];
        for (let j = 0; j < n; j++) out[i * n + j] += left * b[k * n + j];
      }
    return out;
  };

  lab.times = (a, v, n) => {
    const out = new Float64Array(n);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) out[i] += a[i * n + j] * v[j];
    return out;
  };

  const transposed = (a, n) => {
    const out = new Float64Array(n * n);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) out[j * n + i] = a[i * n + j];
    return out;
  };

  lab.identity = (n) => {
    const out = new Float64Array(n * n);
    for (let i = 0; i < n; i++) out[i * n + i] = 1;
    return out;
  };

  // w after 0, 1, ..., depth layers, and the map T of tokens by all of them. A layer maps every token e to
  // (I + damping sum_heads P W_V C W_K^T W_Q) e, and so C to T C T^T; minus the label's row of T is w.
  lab.stack = (run, weights, moments, depth, damping) => {
    const dim = run.dim, width = dim + 1, size = width * width, heads = run.heads;
    const distinct = weights.length / (2 * size * heads), path = [new Float64Array(dim)];
    let c = moments, tokens = lab.identity(width);
    for (let layer = 0; layer < depth; layer++) {
      const step = lab.identity(width);
      for (let head = 0; head < heads; head++) {
        const start = 2 * size * ((layer % distinct) * heads + head);
        const scores = weights.subarray(start, start + size), values = weights.subarray(start + size, start + 2 * size);
        const update = lab.multiply(values, lab.multiply(c, scores, width), width);
        for (let i = 0; i < size; i++) step[i] += damping * update[i];
      }
      tokens = lab.multiply(step, tokens, width);
      c = lab.multiply(lab.multiply(step, c, width), transposed(step, width), width);
      const w = new Float64Array(dim);
      for (let k = 0; k < dim; k++) w[k] = -tokens[dim * width + k];
      path.push(w);
    }
    return { path, tokens };
  };

  // S and b of C.
  lab.normalEquations = (moments, dim) => {
    const width = dim + 1, s = new Float64Array(dim * dim), b = new Float64Array(dim);
    for (let i = 0; i < dim; i++) {
      b[i] = moments[i * width + dim];
      for (let j = 0; j < dim; j++) s[i * dim + j] = moments[i * width + j];
    }
    return { s, b };
  };

  // w <- w + c (b - S w), from 0: w after 0, 1, ..., steps.
  lab.descent = (s, b, dim, c, steps) => {
    const path = [new Float64Array(dim)];
    for (let step = 0; step < steps; step++) {
      const before = path[step], toward = lab.times(s, before, dim);
      path.push(before.map((value, k) => value + c * (b[k] - toward[k])));
    }
    return path;
  };

  // GD++: every step also maps all inputs by I - gamma S. The prediction grows by c b.x, so w by c P b, P the product
  // of these maps; S <- (I - gamma S)^2 S and b <- (I - gamma S)(b - c S b).
  lab.plusPlus = (s, b, dim, c, gamma, steps) => {
    const path = [new Float64Array(dim)];
    let now = s, left = b, map = lab.identity(dim);
    for (let step = 0; step < steps; step++) {
      const grown = lab.times(map, left, dim), before = path[step];
      path.push(before.map((value, k) => value + c * grown[k]));
      const shrink = lab.identity(dim).map((value, k) => value - gamma * now[k]);
      const moved = lab.times(now, left, dim);
      left = lab.times(shrink, left.map((value, k) => value - c * moved[k]), dim);
      map = lab.multiply(map, shrink, dim);
      now = lab.multiply(lab.multiply(shrink, now, dim), shrink, dim);
    }
    return path;
  };

  // Eigenvalues and eigenvectors (columns) of a symmetric matrix, by Jacobi's rotations.
  lab.eigen = (matrix, n) => {
    const a = Float64Array.from(matrix), v = lab.identity(n);
    for (let sweep = 0; sweep < 60; sweep++) {
      let off = 0, all = 0;
      for (let i = 0; i < n; i++)
        for (let j = 0; j < n; j++) {
          all += a[i * n + j] ** 2;
          if (i !== j) off += a[i * n + j] ** 2;
        }
      if (off <= 1e-30 * all) break;
      for (let p = 0; p < n; p++)
        for (let q = p + 1; q < n; q++) {
          if (a[p * n + q] === 0) continue;
          const theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
          const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
          const cos = 1 / Math.sqrt(t * t + 1), sin = t * cos;
          for (let k = 0; k < n; k++) {
            const one = a[k * n + p], two = a[k * n + q];
            a[k * n + p] = cos * one - sin * two;
            a[k * n + q] = sin * one + cos * two;
          }
          for (let k = 0; k < n; k++) {
            const one = a[p * n + k], two = a[q * n + k];
            a[p * n + k] = cos * one - sin * two;
            a[q * n + k] = sin * one + cos * two;
            const left = v[k * n + p], right = v[k * n + q];
            v[k * n + p] = cos * left - sin * right;
            v[k * n + q] = sin * left + cos * right;
          }
        }
    }
    return { values: Float64Array.from({ length: n }, (_, k) => a[k * n + k]), vectors: v };
  };

  // (S + penalty I)^-1 b; without a penalty the least-norm solution, as of a pseudo-inverse.
  lab.ridge = (s, b, dim, penalty) => {
    const { values, vectors } = lab.eigen(s, dim), w = new Float64Array(dim);
    const least = 1e-11 * Math.max(...values);
    for (let k = 0; k < dim; k++) {
      if (penalty === 0 && values[k] <= least) continue;
      let along = 0;
      for (let i = 0; i < dim; i++) along += vectors[i * dim + k] * b[i];
      for (let i = 0; i < dim; i++) w[i] += (vectors[i * dim + k] * along) / (Math.max(values[k], 0) + penalty);
    }
    return w;
  };

  // Variance and fourth moment of an input of range 1.
  lab.inputMoments = (inputs) => (inputs === "gaussian" ? [1, 3] : [1 / 12, 1 / 80]);

  // The best step size of one step: s^2 E tr S / (s^2 E tr S^2 + noise^2 E tr S).
  lab.bestStep = (dim, pairs, inputs, range, scale, noise) => {
    const [unit, four] = lab.inputMoments(inputs), v = unit * range ** 2, m = four * range ** 4;
    const trace = pairs * dim * v;
    const square = pairs * (pairs - 1) * dim * v * v + pairs * (dim * m + dim * (dim - 1) * v * v);
    return (scale ** 2 * trace) / (scale ** 2 * square + noise ** 2 * trace);
  };

  // Step sizes of a run's training, or scaled as the best single step is to contexts of other settings.
  lab.ratesFor = (run, steps, settings) => {
    const place = Math.max(steps, 1) - 1, { gd, gdpp, gamma } = run.rates;
    const before = lab.bestStep(run.dim, run.pairs, run.inputs, run.range, run.scale, 0);
    const now = settings.frozen
      ? before
      : lab.bestStep(run.dim, settings.pairs, run.inputs, settings.range, run.scale, settings.noise);
    const ratio = now / before;
    return { gd: ratio * gd[place], gdpp: ratio * gdpp[place], gamma: ratio * gamma[place] };
  };

  // All predictors on one context of moments C: their paths of w.
  lab.paths = (run, weights, moments, depth, settings) => {
    const dim = run.dim, { s, b } = lab.normalEquations(moments, dim);
    const rates = lab.ratesFor(run, depth, settings);
    const layer = lab.stack(run, weights, moments, depth, settings.damping);
    return {
      layer: layer.path,
      tokens: layer.tokens,
      gd: lab.descent(s, b, dim, rates.gd, depth),
      gdpp: lab.plusPlus(s, b, dim, rates.gdpp, rates.gamma, depth),
      ridge: lab.ridge(s, b, dim, (settings.noise / run.scale) ** 2),
      s,
      b,
      rates,
    };
  };

  // The largest activation of the stack on a context: where it is clipped, the prediction is not linear.
  lab.largestToken = ({ run, x, y, paths }) => {
    const width = run.dim + 1;
    let most = 0;
    for (let i = 0; i < y.length; i++) {
      const token = Float64Array.from({ length: width }, (_, k) => (k < run.dim ? x[i * run.dim + k] : y[i]));
      for (const each of lab.times(paths.tokens, token, width)) most = Math.max(most, Math.abs(each));
    }
    return most;
  };

  // The moments C of a context of these settings, by its number, and its w.
  lab.fresh = (run, settings, number) => {
    const drawn = lab.draw(1e6 + number, settings.pairs, run.dim, run.inputs, run.scale);
    const x = drawn.x.map((value) => settings.range * value);
    return { c: lab.moments(x, lab.labels(x, drawn.w, drawn.e, settings.noise, run.dim), run.dim), w: drawn.w };
  };

  const MOST = 1e9; // what a loss that diverges is shown as

  const half = (run, settings, found, w) => {
    let sum = 0;
    for (let k = 0; k < run.dim; k++) sum += (found[k] - w[k]) ** 2;
    const loss = 0.5 * lab.inputMoments(run.inputs)[0] * settings.range ** 2 * sum;
    return loss < MOST ? loss : MOST;
  };

  // Mean losses v/2 |w - w*|^2 over contexts of these settings, after 0, 1, ..., deepest layers.
  lab.layerLosses = (run, weights, settings, deepest, contexts) => {
    const means = new Float64Array(deepest + 1);
    for (let number = 0; number < contexts; number++) {
      const { c, w } = lab.fresh(run, settings, number), { path } = lab.stack(run, weights, c, deepest, settings.damping);
      path.forEach((found, k) => (means[k] += half(run, settings, found, w) / contexts));
    }
    return means;
  };

  // The same of the algorithms, after as many steps, each depth with its rates.
  lab.algorithmLosses = (run, settings, deepest, contexts) => {
    const dim = run.dim, means = { gd: new Float64Array(deepest + 1), gdpp: new Float64Array(deepest + 1), ridge: 0 };
    const rates = Array.from({ length: deepest + 1 }, (_, k) => lab.ratesFor(run, k, settings));
    for (let number = 0; number < contexts; number++) {
      const { c, w } = lab.fresh(run, settings, number), { s, b } = lab.normalEquations(c, dim);
      means.ridge += half(run, settings, lab.ridge(s, b, dim, (settings.noise / run.scale) ** 2), w) / contexts;
      for (let k = 0; k <= deepest; k++) {
        const { gd, gdpp, gamma } = rates[k];
        means.gd[k] += half(run, settings, lab.descent(s, b, dim, gd, k)[k], w) / contexts;
        means.gdpp[k] += half(run, settings, lab.plusPlus(s, b, dim, gdpp, gamma, k)[k], w) / contexts;
      }
    }
    return means;
  };
})();
