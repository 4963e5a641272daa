// The kernel without XLA, for tests: a C function, and a program that sanitizers watch over small and odd shapes.
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "stack.hpp"
#include "threefry.hpp"
#include "workers.hpp"

using icl::real;

namespace {

icl::Stack stack_of(const std::int64_t* sizes, const double* numbers, const std::int64_t* soft) {
  return {long(sizes[0]), long(sizes[1]),          long(sizes[2]), long(sizes[3]),   long(sizes[4]),   long(sizes[5]),
          sizes[6] != 0,  soft,                    icl::Tokens(sizes[7]), long(sizes[8]), real(numbers[0]),
          real(numbers[1]), real(numbers[2])};
}

}  // namespace

extern "C" int plain_real_bytes() { return sizeof(real); }

extern "C" long plain_block_vectors(const std::int64_t* sizes) {
  const double none[3] = {};
  return icl::Scratch(stack_of(sizes, none, nullptr)).vectors();
}

// losses [tasks] and the gradients [2 parameters] of their mean, with so many helpers
extern "C" void plain_stack(const std::int64_t* sizes, const double* numbers, const std::int64_t* soft, long tasks,
                            long helpers, const real* scores, const real* values, const real* x, const real* y,
                            const real* x_query, const real* y_query, const real* encodings, real* losses,
                            real* gradients) {
  const icl::Stack s = stack_of(sizes, numbers, soft);
  const long groups = icl::groups_of(tasks), of_a_run = 2 * s.parameters();
  std::vector<real> shares(groups * of_a_run);
  std::vector<std::thread> threads;
  icl::carry_out(
      groups, helpers, [&](std::function<void()> run) { threads.emplace_back(std::move(run)); },
      [&](long number) {
        icl::Scratch scratch(s);
        std::unique_ptr<icl::vec[]> memory(new icl::vec[scratch.vectors()]);
        scratch.place(memory.get());
        const icl::NoDenormals guard;
        icl::group(s, {scores, values, x, y, x_query, y_query, encodings, losses}, scratch, number, tasks,
                   shares.data() + number * of_a_run);
      });
  for (auto& thread : threads) thread.join();
  for (long entry = 0; entry < of_a_run; ++entry) {
    gradients[entry] = 0;
    for (long group = 0; group < groups; ++group) gradients[entry] += shares[group * of_a_run + entry];
  }
}

int main() {
  std::mt19937 generator(0);
  std::normal_distribution<real> normal;
  const auto drawn = [&](long count) {
    std::vector<real> numbers(count);
    for (auto& number : numbers) number = normal(generator) / 2;
    return numbers;
  };
  long shapes = 0;
  for (long tasks : {1, 7, 129})
    for (long pairs : {1, 4, 9})
      for (long dim : {1, 3, 10})
        for (long tokens : {0, 1, 2})
          for (long layers : {1, 3}) {
            const long queries = 1 + shapes % 2, encoding = shapes % 3 * 2, heads = 1 + shapes % 2;
            std::vector<std::int64_t> soft(layers, shapes % 2);
            const std::int64_t sizes[9] = {pairs, dim, queries, encoding, layers, heads, shapes % 5 == 0, tokens, 0};
            const double numbers[3] = {0.5, 0.9, shapes % 2 ? 0.0 : 0.8};
            const icl::Stack s = stack_of(sizes, numbers, soft.data());
            const auto scores = drawn(s.parameters()), values = drawn(s.parameters()), x = drawn(tasks * pairs * dim);
            const auto y = drawn(tasks * pairs), x_query = drawn(tasks * queries * dim);
            const auto y_query = drawn(tasks * queries), encodings = drawn(s.rows() * encoding);
            std::vector<real> losses(tasks), gradients(2 * s.parameters());
            plain_stack(sizes, numbers, soft.data(), tasks, 2, scores.data(), values.data(), x.data(), y.data(),
                        x_query.data(), y_query.data(), encodings.data(), losses.data(), gradients.data());
            for (real loss : losses)
              if (!(loss >= 0)) return 1;
            ++shapes;
          }
  for (std::uint64_t size : {1, 2, 7, 100}) {
    std::vector<std::uint32_t> words(size);
    std::vector<float> units(size);
    icl::fill<icl::Word>({1, 2}, size, 0, (size + 1) / 2, words.data());
    icl::fill<icl::Unit>({1, 2}, size, 0, (size + 1) / 2, units.data());
    for (float unit : units)
      if (!(unit >= 0 && unit < 1)) return 1;
  }
  std::printf("%ld shapes\n", shapes);
  return 0;
}
