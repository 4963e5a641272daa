// The forward pass of attention layers of one head on a context in some order: softmax or linear, with positional
// encodings. Of a token only the products W_K^T W_Q and P W_V matter, matrices [W, W] by rows.
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

  // The rows of the pairs in an order [R, W] and of a query [W].
  const rowsOf = (model, x, y, order) => {
    const { dim, width, encoding } = model, apart = model.tokens === "interleaved", rows = [];
    for (const i of order) {
      const token = new Float64Array(width);
      for (let k = 0; k < dim; k++) token[k] = x[i * dim + k];
      if (apart) {
        const label = new Float64Array(width);
        label[dim] = y[i];
        rows.push(token, label);
      } else {
        token[dim] = y[i];
        rows.push(token);
      }
    }
    if (encoding) rows.forEach((row, r) => row.set(lab.encoding(r, encoding), dim + 1));
    return rows;
  };

  // What a layer adds to a row that looks at the context's rows; keys are these times W_K^T W_Q.
  const update = (layer, row, context, keys, width) => {
    const count = context.length, weights = new Float64Array(count);
    let most = -Infinity;
    for (let j = 0; j < count; j++) {
      const key = keys[j];
      let score = 0;
      for (let k = 0; k < width; k++) score += key[k] * row[k];
      weights[j] = layer.attention === "softmax" ? score / Math.sqrt(layer.key_size) : score;
      if (weights[j] > most) most = weights[j];
    }
    if (layer.attention === "softmax") {
      let sum = 0;
      for (let j = 0; j < count; j++) sum += weights[j] = Math.exp(weights[j] - most);
      for (let j = 0; j < count; j++) weights[j] /= sum;
    }
    const pooled = new Float64Array(width);
    for (let j = 0; j < count; j++) {
      const token = context[j], weight = weights[j];
      for (let k = 0; k < width; k++) pooled[k] += weight * token[k];
    }
    return pooled;
  };

  // Predictions at queries [Q][D] of the pairs in an order. The context's rows do not see the queries.
  lab.predictions = (model, x, y, order, queries) => {
    const { dim, width } = model;
    let context = rowsOf(model, x, y, order);
    const place = lab.encoding(context.length, model.encoding);
    const rows = queries.map((query) => {
      const row = new Float64Array(width);
      row.set(query);
      row.set(place, dim + 1);
      return row;
    });
    model.layers.forEach((layer, number) => {
      const keys = context.map((token) => {
        const key = new Float64Array(width);
        for (let w = 0; w < width; w++) if (token[w] !== 0) for (let u = 0; u < width; u++) key[u] += token[w] * layer.scores[w * width + u];
        return key;
      });
      const added = (row) => lab.times(layer.values, update(layer, row, context, keys, width), width);
      rows.forEach((row) => added(row).forEach((value, k) => (row[k] += value)));
      if (number + 1 < model.layers.length)
        context = context.map((row) => {
          const more = added(row);
          return row.map((value, k) => value + more[k]);
        });
    });
    return rows.map((row) => -row[dim]);
  };

  // The sensitivity at a query [D], the gradient of the prediction, by central differences; and the prediction.
  lab.sensitivity = (model, x, y, order, query) => {
    const step = 1e-3, queries = [query];
    for (let k = 0; k < model.dim; k++)
      for (const sign of [1, -1]) queries.push(query.map((value, j) => value + (j === k ? sign * step : 0)));
    const found = lab.predictions(model, x, y, order, queries);
    const gradient = query.map((_, k) => (found[1 + 2 * k] - found[2 + 2 * k]) / (2 * step));
    return { gradient, prediction: found[0] };
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
