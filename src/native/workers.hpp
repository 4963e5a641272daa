// Pieces of work that are taken from one counter by the caller and by helpers, which may start late or never.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace icl {

using Piece = std::function<void(long)>;
using Schedule = std::function<void(std::function<void()>)>;  // runs a function elsewhere, at some time

class Work {
 public:
  Work(long pieces, Piece piece) : pieces_(pieces), piece_(std::move(piece)) {}

  // Takes pieces until none is left. A helper that comes after the last one touches nothing of the caller's.
  void take() {
    for (long number; (number = next_.fetch_add(1)) < pieces_;) {
      piece_(number);
      if (done_.fetch_add(1) + 1 == pieces_) {
        const std::lock_guard<std::mutex> lock(mutex_);
        all_done_.notify_all();
      }
    }
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    all_done_.wait(lock, [this] { return done_.load() == pieces_; });
  }

 private:
  const long pieces_;
  const Piece piece_;
  std::atomic<long> next_{0}, done_{0};
  std::mutex mutex_;
  std::condition_variable all_done_;
};

// Carries out all pieces, with at most so many helpers; the caller waits for pieces, never for a helper to start.
inline void carry_out(long pieces, long helpers, const Schedule& schedule, Piece piece) {
  const auto work = std::make_shared<Work>(pieces, std::move(piece));
  for (long helper = 0; helper < helpers && helper < pieces - 1; ++helper) schedule([work] { work->take(); });
  work->take();
  work->wait();
}

}  // namespace icl
