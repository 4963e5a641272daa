// Models on a context in some order: one linear layer, or a softmax layer below a linear one with positional encodings.
// Of a layer of one head only the products W_K^T W_Q and P W_V matter, matrices [W, W] by rows.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});

  // sin(r / 10000^(2i/size)) in the first half of the channels, the cosines in the second.
  lab.encoding = (row, size) => {
    const out = new Float64Array(size), half = size / 2;
    for (let i = 0; i < half; i++) {
      const angle = row / 10_000 ** ((2 * i) / size);
      out[i] = Math.sin(angle);
      out[half + i] = Math.cos(angle);
    }
    return out;
  };

  // A model made ready: sizes and arrays of float64.
  lab.asModel = (made) => ({
    ...made,
    width: made.dim + 1 + made.encoding,
    layers: made.layers.map((layer) => ({
      ...layer, scores: Float64Array.from(layer.key_query), values: Float64Array.from(layer.projection_value),
    })),
  });

  // What a model predicts at a query, and the sensitivity there (the gradient, [D]), as a function of the order of the
  // pairs. What does not depend on the order is computed once. lsa1: one linear layer without positions.
  lab.ordered = (model, x, y, query) =>
    (model.layers.length === 1 ? lab.withoutPositions : lab.withPositions)(model, x, y, query);

  // One linear layer: w = -v^T C W_K^T W_Q on inputs, C the sum of e e^T over the pairs, v the label's row of P W_V.
  lab.withoutPositions = (model, x, y, query) => {
    const { dim, width } = model, { scores, values } = model.layers[0], v = values.subarray(dim * width, (dim + 1) * width);
    return (order) => {
      const sum = new Float64Array(width), gradient = new Array(dim).fill(0);
      for (const i of order) {
        let read = v[dim] * y[i];
        for (let k = 0; k < dim; k++) read += v[k] * x[i * dim + k];
        for (let k = 0; k < dim; k++) sum[k] += read * x[i * dim + k];
        sum[dim] += read * y[i];
      }
      let prediction = 0;
      for (let k = 0; k < dim; k++) {
        for (let j = 0; j < width; j++) gradient[k] -= sum[j] * scores[j * width + k];
        prediction += gradient[k] * query[k];
      }
      return { gradient, prediction };
    };
  };

  // a^T M b of vectors that begin at these channels.
  const form = (matrix, width, a, fromA, b, fromB) => {
    let sum = 0;
    for (let i = 0; i < a.length; i++) for (let j = 0; j < b.length; j++) sum += a[i] * matrix[(fromA + i) * width + fromB + j] * b[j];
    return sum;
  };

  // What rows give each other, which no context changes, is computed once for a model.
  const known = new WeakMap();
  const ofPlaces = (model, layer, places, rows, made) => {
    const from = model.dim + 1;
    if (known.get(model)?.length !== rows * rows)
      known.set(model, made((a, b) => form(layer.scores, model.width, places[b], from, places[a], from)));
    return known.get(model);
  };

  // A softmax layer below a linear one, on tokens x, y, x, y, ... with a positional encoding p. A token is e = (d, p), so
  // every product e^T M e' is a sum of four, of tokens and of rows, which are the same in all orders. The context's rows
  // do not see the query's. With weights w of the first layer, of whose rows e_j becomes f_j = e_j + V_1 sum_b w_jb e_b,
  //   prediction = -(f_q[label] + G^T K_2 f_q),  G = sum_j a_j f_j,  a_j = v.f_j,  v the label's row of V_2.
  lab.withPositions = (model, x, y, query) => {
    const { dim, width, encoding } = model, [first, second] = model.layers, pairs = y.length, rows = 2 * pairs, part = dim + 1;
    const scale = 1 / Math.sqrt(first.key_size), places = Array.from({ length: rows + 1 }, (_, r) => lab.encoding(r, encoding));
    const tokens = Array.from({ length: rows }, (_, t) => {
      const token = new Float64Array(part), i = t >> 1;
      if (t % 2) token[dim] = y[i];
      else for (let k = 0; k < dim; k++) token[k] = x[i * dim + k];
      return token;
    });
    const grid = (count, other, made) => {
      const out = new Float64Array(count * other);
      for (let a = 0; a < count; a++) for (let b = 0; b < other; b++) out[a * other + b] = made(a, b);
      return out;
    };
    // A row a (token t, row r) gives a key b a score [t, t'] + [t, r'] + [r, t'] + [r, r'], so its exponential is a
    // product of four; each has its largest value over the keys divided out, which a softmax does not see.
    const raised = (scores) => {
      for (let a = 0; a < rows; a++) {
        const line = scores.subarray(a * rows, (a + 1) * rows), most = Math.max(...line);
        for (let b = 0; b < rows; b++) line[b] = Math.exp(line[b] - most);
      }
      return scores;
    };
    const k1 = first.scores, tt = raised(grid(rows, rows, (a, b) => scale * form(k1, width, tokens[b], 0, tokens[a], 0)));
    const tr = raised(grid(rows, rows, (a, b) => scale * form(k1, width, places[b], part, tokens[a], 0)));
    const rt = raised(grid(rows, rows, (a, b) => scale * form(k1, width, tokens[b], 0, places[a], part)));
    const rr = ofPlaces(model, first, places, rows, (made) => raised(grid(rows, rows, (a, b) => scale * made(a, b))));
    const v = second.values.subarray(dim * width, (dim + 1) * width), v1 = new Float64Array(width);
    for (let i = 0; i < width; i++) for (let j = 0; j < width; j++) v1[j] += v[i] * first.values[i * width + j];
    const dot = (left, from, right) => right.reduce((sum, each, k) => sum + left[from + k] * each, 0);
    const ownT = tokens.map((each) => dot(v, 0, each)), ownR = places.map((each) => dot(v, part, each));
    const seenT = tokens.map((each) => dot(v1, 0, each)), seenR = places.map((each) => dot(v1, part, each));
    const unit = Array.from({ length: dim }, (_, k) => Float64Array.from({ length: k + 1 }, (_, i) => (i === k ? 1 : 0)));
    const slopeT = tokens.map((each) => unit.map((one) => scale * form(k1, width, each, 0, one, 0)));
    const slopeR = places.map((each) => unit.map((one) => scale * form(k1, width, each, part, one, 0)));
    const lastT = tokens.map((each) => scale * form(k1, width, each, 0, places[rows], part));
    const lastR = places.map((each) => scale * form(k1, width, each, part, places[rows], part));
    const token = new Int32Array(rows), weights = new Float64Array(rows), beta = new Float64Array(rows), seen = new Float64Array(rows);
    const outer = new Float64Array(width), inner = new Float64Array(width), slopes = new Float64Array(rows * dim);

    const softmax = () => {
      let most = -Infinity, sum = 0;
      for (let b = 0; b < rows; b++) if (weights[b] > most) most = weights[b];
      for (let b = 0; b < rows; b++) sum += weights[b] = Math.exp(weights[b] - most);
      for (let b = 0; b < rows; b++) weights[b] /= sum;
    };
    // adds a multiple of the token at a row to a vector
    const add = (vector, row, factor) => {
      const data = tokens[token[row]], place = places[row];
      for (let k = 0; k < part; k++) vector[k] += factor * data[k];
      for (let k = 0; k < encoding; k++) vector[part + k] += factor * place[k];
    };

    return (order) => {
      for (let p = 0; p < pairs; p++) {
        token[2 * p] = 2 * order[p];
        token[2 * p + 1] = 2 * order[p] + 1;
      }
      for (let b = 0; b < rows; b++) seen[b] = seenT[token[b]] + seenR[b];
      beta.fill(0);
      outer.fill(0);
      inner.fill(0);
      for (let a = 0; a < rows; a++) {
        const t = token[a] * rows, r = a * rows;
        let sum = 0, pooled = 0;
        for (let b = 0; b < rows; b++) {
          const weight = tt[t + token[b]] * rt[r + token[b]] * tr[t + b] * rr[r + b];
          weights[b] = weight;
          sum += weight;
          pooled += weight * seen[b];
        }
        const alpha = ownT[token[a]] + ownR[a] + pooled / sum, share = alpha / sum;
        for (let b = 0; b < rows; b++) beta[b] += share * weights[b];
        add(outer, a, alpha);
      }
      for (let b = 0; b < rows; b++) add(inner, b, beta[b]);
      const through = lab.times(first.values, inner, width), h = new Float64Array(width), m = new Float64Array(width);
      h[dim] = 1;
      for (let i = 0; i < width; i++) for (let j = 0; j < width; j++) h[j] += (outer[i] + through[i]) * second.scores[i * width + j];
      for (let i = 0; i < width; i++) for (let j = 0; j < width; j++) m[j] += h[i] * first.values[i * width + j];
      for (let b = 0; b < rows; b++) {
        weights[b] = lastT[token[b]] + lastR[b];
        for (let k = 0; k < dim; k++) {
          slopes[b * dim + k] = slopeT[token[b]][k] + slopeR[b][k];
          weights[b] += slopes[b * dim + k] * query[k];
        }
      }
      softmax();
      let prediction = dot(h, part, places[rows]);
      const mean = new Float64Array(dim), gradient = Array.from({ length: dim }, (_, k) => -h[k]);
      for (let k = 0; k < dim; k++) {
        prediction += h[k] * query[k];
        for (let b = 0; b < rows; b++) mean[k] += weights[b] * slopes[b * dim + k];
      }
      for (let b = 0; b < rows; b++) {
        const data = tokens[token[b]], place = places[b];
        let read = 0;
        for (let k = 0; k < part; k++) read += m[k] * data[k];
        for (let k = 0; k < encoding; k++) read += m[part + k] * place[k];
        read *= weights[b];
        prediction += read;
        for (let k = 0; k < dim; k++) gradient[k] -= read * (slopes[b * dim + k] - mean[k]);
      }
      return { gradient, prediction: -prediction };
    };
  };

  // Orders of N pairs from a seed: the first is as drawn.
  lab.orders = (count, pairs, seed) => {
    const uniform = lab.uniform(seed), found = [Array.from({ length: pairs }, (_, k) => k)];
    while (found.length < count) {
      const order = [...found[0]];
      for (let k = pairs - 1; k > 0; k--) {
        const other = Math.floor(uniform() * (k + 1));
        [order[k], order[other]] = [order[other], order[k]];
      }
      found.push(order);
    }
    return found;
  };

  // The order easy to hard: by the error on a pair of one step of gradient descent on the others.
  lab.easyFirst = (x, y, dim) => {
    const pairs = y.length, c = pairs > 1 ? lab.bestStep(dim, pairs - 1, "uniform", 1, 1, 0) : 0;
    const errors = Array.from({ length: pairs }, (_, i) => {
      let predicted = 0;
      for (let j = 0; j < pairs; j++) {
        if (j === i) continue;
        for (let k = 0; k < dim; k++) predicted += c * y[j] * x[j * dim + k] * x[i * dim + k];
      }
      return Math.abs(y[i] - predicted);
    });
    return Array.from({ length: pairs }, (_, k) => k).sort((a, b) => errors[a] - errors[b]);
  };
})();
