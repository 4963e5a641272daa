// What XLA calls: the stack's losses and gradients, and random numbers. No other file knows of XLA.
//
// Arrays may have leading axes of runs, of size 1 where all runs share an array: those of `vmap` by expand_dims.
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "stack.hpp"
#include "threefry.hpp"
#include "workers.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using icl::real;

namespace {

using Dimensions = ffi::Span<const std::int64_t>;

// The leading axes of an array behind which `inner` axes of one run stand.
class Runs {
 public:
  Runs(Dimensions dimensions, std::size_t inner) {
    if (dimensions.size() < inner) return;
    leading_.assign(dimensions.begin(), dimensions.end() - inner);
    for (std::size_t axis = leading_.size(); axis < dimensions.size(); ++axis) size_ *= dimensions[axis];
  }
  std::int64_t count() const {
    std::int64_t runs = 1;
    for (const auto size : leading_) runs *= size;
    return runs;
  }
  // Where the entries of a run begin that has this number among runs of the axes of `all`.
  std::int64_t offset(const Runs& all, std::int64_t run) const {
    std::int64_t place = 0, stride = 1;
    for (std::size_t axis = leading_.size(); axis-- > 0; run /= all.leading_[axis]) {
      if (leading_[axis] > 1) place += run % all.leading_[axis] * stride;
      stride *= leading_[axis];
    }
    return place * size_;
  }
  bool fits(const Runs& all) const {
    if (leading_.size() != all.leading_.size()) return false;
    for (std::size_t axis = 0; axis < leading_.size(); ++axis)
      if (leading_[axis] != 1 && leading_[axis] != all.leading_[axis]) return false;
    return true;
  }

 private:
  std::vector<std::int64_t> leading_;
  std::int64_t size_ = 1;
};

icl::Schedule schedule_of(ffi::ThreadPool& pool) {
  return [&pool](std::function<void()> run) { pool.Schedule(std::move(run)); };
}

long helpers_of(const ffi::ThreadPool& pool) { return long(pool.num_threads()) - 1; }

// The memory of a thread, which it keeps from call to call.
icl::vec* memory_of_thread(long vectors) {
  thread_local std::unique_ptr<char[]> kept;
  thread_local long room = 0;
  if (room < vectors) {
    kept.reset(new char[(vectors + 1) * sizeof(icl::vec)]);
    room = vectors;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(kept.get());
  return reinterpret_cast<icl::vec*>((address + sizeof(icl::vec) - 1) / sizeof(icl::vec) * sizeof(icl::vec));
}

using F32 = ffi::Buffer<ffi::F32>;
using Result = ffi::Result<F32>;

// scores, values [.., layers, heads, W, W]; x [.., B, N, D]; y [.., B, N]; x_query [.., B, Q, D]; y_query [.., B, Q];
// encodings [.., R, E] -> losses [.., B], their mean [..], and its gradients by scores
// and values
ffi::Error stack(
    ffi::ThreadPool pool, F32 scores, F32 values, F32 x, F32 y, F32 x_query, F32 y_query, F32 encodings, Result losses,
    Result mean, Result d_scores, Result d_values, std::int64_t layers, bool recurrent, Dimensions soft, std::int64_t tokens,
    std::int64_t channel, float score_scale, float damping, float clip) {
  const Runs all(losses->dimensions(), 1), of_losses = all, of_mean(mean->dimensions(), 0);
  const Runs of_d(d_scores->dimensions(), 4);
  const Runs of_scores(scores.dimensions(), 4), of_values(values.dimensions(), 4), of_x(x.dimensions(), 3);
  const Runs of_y(y.dimensions(), 2), of_xq(x_query.dimensions(), 3), of_yq(y_query.dimensions(), 2);
  const Runs of_encodings(encodings.dimensions(), 2);
  for (const Runs& each : {of_scores, of_values, of_x, of_y, of_xq, of_yq, of_encodings, of_mean, of_d})
    if (!each.fits(all)) return ffi::Error::InvalidArgument("the leading axes of the arrays differ");
  const auto in = x.dimensions(), asked = x_query.dimensions(), given = scores.dimensions();
  icl::Stack s;
  s.pairs = in[in.size() - 2];
  s.dim = in[in.size() - 1];
  s.queries = asked[asked.size() - 2];
  s.encoding = encodings.dimensions().back();
  s.layers = layers;
  s.heads = given[given.size() - 3];
  s.recurrent = recurrent;
  s.soft = soft.begin();
  s.tokens = icl::Tokens(tokens);
  s.channel = channel;
  s.score_scale = score_scale;
  s.damping = damping;
  s.clip = clip;
  const long tasks = losses->dimensions().back();
  const bool sound = long(soft.size()) == layers && given[given.size() - 4] == s.free_layers() &&
                     given.back() == s.width() && given[given.size() - 2] == s.width() && channel < s.width() &&
                     in[in.size() - 3] == tasks && asked[asked.size() - 3] == tasks && asked.back() == s.dim &&
                     (s.encoding == 0 || encodings.dimensions()[encodings.dimensions().size() - 2] == s.rows());
  if (!sound) return ffi::Error::InvalidArgument("the shapes of the arrays do not fit together");

  const long groups = icl::groups_of(tasks), of_a_run = 2 * s.parameters();
  std::vector<real> shares(all.count() * groups * of_a_run);
  const auto piece = [&](long number) {
    const long run = number / groups;
    const icl::Arrays arrays = {
        scores.typed_data() + of_scores.offset(all, run),     values.typed_data() + of_values.offset(all, run),
        x.typed_data() + of_x.offset(all, run),               y.typed_data() + of_y.offset(all, run),
        x_query.typed_data() + of_xq.offset(all, run),        y_query.typed_data() + of_yq.offset(all, run),
        encodings.typed_data() + of_encodings.offset(all, run), losses->typed_data() + of_losses.offset(all, run)};
    icl::Scratch scratch(s);
    scratch.place(memory_of_thread(scratch.vectors()));
    const icl::NoDenormals guard;
    icl::group(s, arrays, scratch, number % groups, tasks, shares.data() + number * of_a_run);
  };
  icl::carry_out(all.count() * groups, helpers_of(pool), schedule_of(pool), piece);

  for (long run = 0; run < all.count(); ++run) {
    real* out[2] = {d_scores->typed_data() + of_d.offset(all, run), d_values->typed_data() + of_d.offset(all, run)};
    const real* share = shares.data() + run * groups * of_a_run;
    mean->typed_data()[of_mean.offset(all, run)] =
        icl::mean_of(losses->typed_data() + of_losses.offset(all, run), tasks);
    for (long entry = 0; entry < of_a_run; ++entry) {
      real sum = 0;
      for (long group = 0; group < groups; ++group) sum += share[group * of_a_run + entry];
      out[entry / s.parameters()][entry % s.parameters()] = sum;
    }
  }
  return ffi::Error::Success();
}

constexpr long BLOCKS = 1 << 14;  // of random numbers in a piece of work

// keys [.., 2] -> numbers [.., size]
template <class What, ffi::DataType Type>
ffi::Error random(ffi::ThreadPool pool, ffi::Buffer<ffi::U32> keys, ffi::Result<ffi::Buffer<Type>> numbers) {
  const std::uint64_t size = numbers->dimensions().back(), blocks = (size + 1) / 2;
  const long runs = keys.element_count() / 2, pieces = long((blocks + BLOCKS - 1) / BLOCKS);
  if (numbers->element_count() != runs * size) return ffi::Error::InvalidArgument("there are as many rows as keys");
  const auto piece = [&](long number) {
    const long run = number / pieces, part = number % pieces;
    const std::uint32_t* key = keys.typed_data() + 2 * run;
    const std::uint64_t begin = std::uint64_t(part) * BLOCKS, end = begin + BLOCKS < blocks ? begin + BLOCKS : blocks;
    icl::fill<What>({key[0], key[1]}, size, begin, end, numbers->typed_data() + run * size);
  };
  icl::carry_out(runs * pieces, helpers_of(pool), schedule_of(pool), piece);
  return ffi::Error::Success();
}

const auto bits = random<icl::Word, ffi::U32>;
const auto units = random<icl::Unit, ffi::F32>;

}  // namespace

extern "C" int icl_lanes() { return icl::LANES; }

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    icl_stack, stack,
    ffi::Ffi::Bind()
        .Ctx<ffi::ThreadPool>()
        .Arg<F32>()
        .Arg<F32>()
        .Arg<F32>()
        .Arg<F32>()
        .Arg<F32>()
        .Arg<F32>()
        .Arg<F32>()
        .Ret<F32>()
        .Ret<F32>()
        .Ret<F32>()
        .Ret<F32>()
        .Attr<std::int64_t>("layers")
        .Attr<bool>("recurrent")
        .Attr<Dimensions>("soft")
        .Attr<std::int64_t>("tokens")
        .Attr<std::int64_t>("channel")
        .Attr<float>("score_scale")
        .Attr<float>("damping")
        .Attr<float>("clip"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    icl_bits, bits, ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::Buffer<ffi::U32>>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    icl_units, units,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::Buffer<ffi::F32>>());
