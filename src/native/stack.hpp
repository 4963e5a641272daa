// Loss and gradient of a stack of linear or softmax attention layers, a block of LANES tasks at a time.
//
// Every entry of a token is a vector over the block's tasks. A block is taken forward through all layers and back at
// once, so what the backward pass needs never leaves the cache. With T [R, W] the tokens of a layer, C their rows of
// the context, and A = W_Q W_K^T and V = W_V P of each head:
//
//   Q = T A    S = Q C^T    P = S, or softmax(S / sqrt(K))    M = P C    T' = clip(T + damping sum_heads M V)
//
// Linear attention has M V = Q (C^T C V) too, which is less work where a context is long: then G = C^T C and G V are
// kept in place of S and M.
#pragma once

#include <algorithm>
#include <cmath>

#include "products.hpp"

namespace icl {

enum Tokens { CONCATENATED, INTERLEAVED, INTERLEAVED_SHARED };

// A stack, and the contexts it sees. Rows of the context come first, those of the queries last.
struct Stack {
  long pairs, dim, queries, encoding;  // encoding: channels of the positional encoding
  long layers, heads;
  bool recurrent;            // all layers share their matrices
  const std::int64_t* soft;  // of each layer: whether its attention is softmax
  Tokens tokens;
  long channel;  // of which minus the value is the prediction
  real score_scale, damping, clip;

  long context() const { return tokens == CONCATENATED ? pairs : 2 * pairs; }
  long rows() const { return context() + queries; }
  long data_width() const { return tokens == INTERLEAVED_SHARED ? dim : dim + 1; }
  long width() const { return data_width() + encoding; }
  long free_layers() const { return recurrent ? 1 : layers; }
  long matrix() const { return width() * width(); }
  long parameters() const { return free_layers() * heads * matrix(); }  // of A, and as many of V
  long of_pairs() const { return std::max(rows() * context(), matrix()); }  // room for S or G of a head
  // Whether so many rows are updated by G: it takes fewer products, and G V has room in the place of M.
  bool by_moments(long layer, long updated) const {
    const long c = context(), w = width();
    return !soft[layer] && rows() >= w && 6 * updated * c > 3 * w * w + 2 * c * w;
  }
};

// Where a run's arrays begin: A and V [layers, heads, W, W], the batch, the encodings [R, E], and the results.
struct Arrays {
  const real *scores, *values, *x, *y, *x_query, *y_query, *encodings;
  real* losses;
};

// What one thread works in; vectors().
class Scratch {
 public:
  explicit Scratch(const Stack& s)
      : tokens_((s.layers + 1) * s.rows() * s.width()),
        projected_(s.layers * s.heads * s.rows() * s.width()),
        weights_(s.layers * s.heads * s.of_pairs()),
        slope_(s.rows() * s.width()),
        of_scores_(s.of_pairs()),
        sums_(2 * s.parameters()) {}
  long vectors() const { return tokens_ + 2 * projected_ + weights_ + 3 * slope_ + of_scores_ + sums_; }
  void place(vec* memory) {
    tokens = memory;
    queries = tokens + tokens_;
    pooled = queries + projected_;
    weights = pooled + projected_;
    d_tokens = weights + weights_;
    d_update = d_tokens + slope_;
    d_rows = d_update + slope_;
    d_weights = d_rows + slope_;
    sums = d_weights + of_scores_;
  }
  long count() const { return sums_; }
  vec *tokens, *queries, *pooled, *weights, *d_tokens, *d_update, *d_rows, *d_weights;
  vec* sums;  // of the gradients of A, then of V, over the blocks of a group

 private:
  long tokens_, projected_, weights_, slope_, of_scores_, sums_;
};

// A block's tasks: their numbers, and 1 for those that count. Lanes behind the last task repeat it and count nothing.
struct Lanes {
  long task[LANES];
  vec counts;
};

inline Lanes lanes_of(long first, long end) {
  Lanes lanes;
  for (int lane = 0; lane < LANES; ++lane) {
    lanes.task[lane] = first + lane < end ? first + lane : end - 1;
    lanes.counts[lane] = first + lane < end ? 1 : 0;
  }
  return lanes;
}

// Where the entries of a task's array go: `of_a_row` of them side by side, then on to the next row.
struct Places {
  vec* first;
  long of_a_row, row;
  vec& at(long entry) const { return first[entry / of_a_row * row + entry % of_a_row]; }
};

// The first `count` entries of each lane's task, whose arrays begin `of_a_task` apart.
inline void gather(const Lanes& lanes, const real* from, long of_a_task, long count, Places to) {
  if (count < LANES) {
    for (long entry = 0; entry < count; ++entry)
      for (int lane = 0; lane < LANES; ++lane) to.at(entry)[lane] = from[lanes.task[lane] * of_a_task + entry];
    return;
  }
  for (long begin = 0; begin < count; begin += LANES) {
    const long entry = begin + LANES <= count ? begin : count - LANES;  // the last ones overlap those before
    vec square[LANES];
#pragma GCC unroll 16
    for (int lane = 0; lane < LANES; ++lane) square[lane] = loaded(from + lanes.task[lane] * of_a_task + entry);
    transpose(square);
    long row = entry / to.of_a_row, column = entry % to.of_a_row;
    for (int j = 0; j < LANES; ++j) {
      to.first[row * to.row + column] = square[j];
      if (++column == to.of_a_row) column = 0, ++row;
    }
  }
}

inline void tokenise(const Stack& s, const Arrays& arrays, const Lanes& lanes, vec* tokens) {
  const long width = s.width(), pair = s.tokens == CONCATENATED ? width : 2 * width;  // from a pair's row to the next's
  const bool apart = s.tokens != CONCATENATED;
  for (long row = apart ? 0 : s.context(); row < s.rows(); ++row)  // where neither an input nor a label is written
    for (long channel = 0; channel < s.data_width(); ++channel) tokens[row * width + channel] = vec{};
  gather(lanes, arrays.x, s.pairs * s.dim, s.pairs * s.dim, {tokens, s.dim, pair});
  gather(lanes, arrays.x_query, s.queries * s.dim, s.queries * s.dim, {tokens + s.context() * width, s.dim, width});
  gather(lanes, arrays.y, s.pairs, s.pairs, {tokens + (apart ? width : 0) + s.data_width() - 1, 1, pair});
  for (long row = 0; row < s.rows(); ++row)
    for (long channel = 0; channel < s.encoding; ++channel)
      tokens[row * width + s.data_width() + channel] = splat(arrays.encodings[row * s.encoding + channel]);
}

inline void softmax(vec* scores, long count, real scale) {
  vec top = scores[0] * scale;
  for (long j = 0; j < count; ++j) top = larger(scores[j] *= scale, top);
  vec sum = {};
  for (long j = 0; j < count; ++j) sum += scores[j] = exponential(scores[j] - top);
  for (long j = 0; j < count; ++j) scores[j] /= sum;
}

// From the gradient of a row's weights to that of its scores.
inline void softmax_back(const vec* weights, vec* gradient, long count, real scale) {
  vec mean = {};
  for (long j = 0; j < count; ++j) mean += weights[j] * gradient[j];
  for (long j = 0; j < count; ++j) gradient[j] = weights[j] * (gradient[j] - mean) * scale;
}

// A layer: the rows that it updates, first..R-1, and where its arrays of all rows are.
struct Layer {
  long number, first, rows;
  bool by_moments;
  Vectors tokens, next;
};

inline Layer layer_of(const Stack& s, const Scratch& scratch, long number) {
  const long first = number == s.layers - 1 ? s.context() : 0, rows = s.rows() - first, width = s.width();
  vec* tokens = scratch.tokens + number * s.rows() * width;
  const Vectors next = {tokens + s.rows() * width, width, 1};
  return {number, first, rows, s.by_moments(number, rows), {tokens, width, 1}, next};
}

// What a head has of a layer: A and V, Q and M (or G V) of its rows, S or P, and the sums of its gradients.
struct Head {
  Weights into, out;
  Vectors queries, pooled, weights, of_into, of_out;
};

inline Head head_of(const Stack& s, const Arrays& arrays, const Scratch& scratch, const Layer& layer, long head) {
  const long width = s.width(), number = layer.number * s.heads + head, of_rows = number * s.rows() * width;
  const long place = ((s.recurrent ? 0 : layer.number) * s.heads + head) * s.matrix();
  return {{arrays.scores + place, width, 1},
          {arrays.values + place, width, 1},
          {scratch.queries + of_rows, width, 1},
          {scratch.pooled + of_rows, width, 1},
          {scratch.weights + number * s.of_pairs(), s.context(), 1},
          {scratch.sums + place, width, 1},
          {scratch.sums + s.parameters() + place, width, 1}};
}

// G of a layer, which its heads share.
inline Vectors moments_of(const Stack& s, const Scratch& scratch, const Layer& layer) {
  return {scratch.weights + layer.number * s.heads * s.of_pairs(), s.width(), 1};
}

inline void forward(const Stack& s, const Arrays& arrays, const Scratch& scratch, const Layer& layer) {
  const long width = s.width(), context = s.context(), rows = layer.rows;
  const Vectors tokens = layer.tokens, updated = tokens.from_row(layer.first);
  const Vectors update = {scratch.d_update, width, 1}, moments = moments_of(s, scratch, layer);
  if (layer.by_moments) product(width, context, width, tokens.transposed(), tokens, moments);
  for (long head = 0; head < s.heads; ++head) {
    const Head h = head_of(s, arrays, scratch, layer, head);
    product(rows, width, width, updated, h.into, h.queries);
    if (layer.by_moments) {
      product(width, width, width, moments, h.out, h.pooled);
      product(rows, width, width, h.queries, h.pooled, update, head > 0);
      continue;
    }
    product(rows, width, context, h.queries, tokens.transposed(), h.weights);
    if (s.soft[layer.number])
      for (long row = 0; row < rows; ++row) softmax(&h.weights(row, 0), context, s.score_scale);
    product(rows, context, width, h.weights, tokens, h.pooled);
    product(rows, width, width, h.pooled, h.out, update, head > 0);
  }
  vec* next = layer.next.from_row(layer.first).first;
  for (long entry = 0; entry < rows * width; ++entry) {
    const vec value = updated.first[entry] + scratch.d_update[entry] * s.damping;
    next[entry] = s.clip > 0 ? clipped(value, s.clip) : value;
  }
}

// From the gradient of a head's update to that of Q, in d_rows, by S and M; adds that of V, and of the context.
inline void back_by_scores(const Stack& s, const Scratch& scratch, const Layer& layer, const Head& h) {
  const long width = s.width(), context = s.context(), rows = layer.rows;
  const Vectors d_update = {scratch.d_update, width, 1}, d_rows = {scratch.d_rows, width, 1};
  const Vectors d_weights = {scratch.d_weights, context, 1}, d_tokens = {scratch.d_tokens, width, 1};
  product(width, rows, width, h.pooled.transposed(), d_update, h.of_out, true);
  product(rows, width, width, d_update, h.out.transposed(), d_rows);  // of M
  product(rows, width, context, d_rows, layer.tokens.transposed(), d_weights);
  if (layer.number > 0) product(context, rows, width, h.weights.transposed(), d_rows, d_tokens, true);
  if (s.soft[layer.number])
    for (long row = 0; row < rows; ++row) softmax_back(&h.weights(row, 0), &d_weights(row, 0), context, s.score_scale);
  product(rows, context, width, d_weights, layer.tokens, d_rows);
  if (layer.number > 0) product(context, rows, width, d_weights.transposed(), h.queries, d_tokens, true);
}

// The same by G and G V; that of G is added to d_weights, `first` head first.
inline void back_by_moments(const Stack& s, const Scratch& scratch, const Layer& layer, const Head& h, bool first) {
  const long width = s.width(), rows = layer.rows;
  const Vectors d_update = {scratch.d_update, width, 1}, d_rows = {scratch.d_rows, width, 1};
  const Vectors d_moments = {scratch.d_weights, width, 1};
  product(width, rows, width, h.queries.transposed(), d_update, d_rows);  // of G V
  product(width, width, width, moments_of(s, scratch, layer), d_rows, h.of_out, true);
  if (layer.number > 0) product(width, width, width, d_rows, h.out.transposed(), d_moments, !first);
  product(rows, width, width, d_update, h.pooled.transposed(), d_rows);
}

// Adds C (dG + dG^T) to the gradient of the context.
inline void back_to_context(const Stack& s, const Scratch& scratch, const Layer& layer) {
  const long width = s.width();
  const Vectors d_moments = {scratch.d_weights, width, 1}, d_tokens = {scratch.d_tokens, width, 1};
  for (long i = 0; i < width; ++i)
    for (long j = 0; j <= i; ++j) d_moments(i, j) = d_moments(j, i) = d_moments(i, j) + d_moments(j, i);
  product(s.context(), width, width, layer.tokens, d_moments, d_tokens, true);
}

// Adds the layer's gradients to the sums, and turns d_tokens, the gradient of the tokens behind it, into that of its
// own; the first layer's tokens need none.
inline void backward(const Stack& s, const Arrays& arrays, const Scratch& scratch, const Layer& layer) {
  const long width = s.width(), rows = layer.rows;
  const bool deeper = layer.number > 0;
  const Vectors updated = layer.tokens.from_row(layer.first), d_tokens = {scratch.d_tokens, width, 1};
  const Vectors d_updated = d_tokens.from_row(layer.first), d_rows = {scratch.d_rows, width, 1};
  const vec* next = layer.next.from_row(layer.first).first;
  for (long entry = 0; entry < rows * width; ++entry) {
    vec& gradient = d_updated.first[entry];
    if (s.clip > 0) gradient = through_clip(gradient, next[entry], s.clip);
    scratch.d_update[entry] = gradient * s.damping;
  }
  for (long head = 0; head < s.heads; ++head) {
    const Head h = head_of(s, arrays, scratch, layer, head);
    if (layer.by_moments)
      back_by_moments(s, scratch, layer, h, head == 0);
    else
      back_by_scores(s, scratch, layer, h);
    product(width, rows, width, updated.transposed(), d_rows, h.of_into, true);
    if (deeper) product(rows, width, width, d_rows, h.into.transposed(), d_updated, true);
  }
  if (layer.by_moments && deeper) back_to_context(s, scratch, layer);
}

// Losses of the tasks first..end-1, and their share of the gradient of the mean over `tasks`, added to the sums.
inline void block(const Stack& s, const Arrays& arrays, const Scratch& scratch, long first, long end, long tasks) {
  const Lanes lanes = lanes_of(first, end);
  const long width = s.width(), queries = s.queries;
  tokenise(s, arrays, lanes, scratch.tokens);
  for (long number = 0; number < s.layers; ++number) forward(s, arrays, scratch, layer_of(s, scratch, number));
  for (long entry = 0; entry < s.rows() * width; ++entry) scratch.d_tokens[entry] = vec{};
  const vec* last = layer_of(s, scratch, s.layers - 1).next.from_row(s.context()).first;
  vec loss = {};
  for (long query = 0; query < queries; ++query) {
    vec target;
    gather(lanes, arrays.y_query + query, queries, 1, {&target, 1, 1});
    const vec error = -last[query * width + s.channel] - target;
    loss += error * error * (real(0.5) / queries);
    const vec none = {};
    const vec slope = -error * (real(1) / (real(tasks) * queries));
    scratch.d_tokens[(s.context() + query) * width + s.channel] = lanes.counts != none ? slope : none;
  }
  for (int lane = 0; lane < LANES && first + lane < end; ++lane) arrays.losses[first + lane] = loss[lane];
  for (long number = s.layers - 1; number >= 0; --number) backward(s, arrays, scratch, layer_of(s, scratch, number));
}

constexpr long GROUP = 128;  // tasks whose gradients are summed together: the same for any number of threads

inline long groups_of(long tasks) { return (tasks + GROUP - 1) / GROUP; }

// The share of a group in the gradients of A and V, [2 parameters].
inline void group(const Stack& s, const Arrays& arrays, Scratch& scratch, long number, long tasks, real* shares) {
  const long end = (number + 1) * GROUP < tasks ? (number + 1) * GROUP : tasks;
  for (long entry = 0; entry < scratch.count(); ++entry) scratch.sums[entry] = vec{};
  for (long first = number * GROUP; first < end; first += LANES) {
    const long behind = first + LANES < end ? first + LANES : end;
    block(s, arrays, scratch, first, behind, tasks);
  }
  for (long entry = 0; entry < scratch.count(); ++entry) shares[entry] = total(scratch.sums[entry]);
}

// The mean of losses, group by group.
inline real mean_of(const real* losses, long tasks) {
  double sum = 0;
  for (long number = 0; number < groups_of(tasks); ++number) {
    double share = 0;
    for (long task = number * GROUP; task < (number + 1) * GROUP && task < tasks; ++task) share += losses[task];
    sum += share;
  }
  return real(sum / tasks);
}

}  // namespace icl
