// Scratch memory of a cpu device's threads: made when kernels are loaded, lent while they run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace fuse::runtime::cpu {

/// Aligned to 64 bytes. Throws std::bad_alloc.
struct FreeMemory {
  void operator()(char* memory) const noexcept;
};
using ScratchBlock = std::unique_ptr<char, FreeMemory>;
ScratchBlock make_scratch(std::int64_t bytes);

class Scratch {
  struct Set;

 public:
  explicit Scratch(int helpers);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// From now on loans of so many bytes allocate nothing. Throws std::bad_alloc.
  void reserve(std::int64_t bytes);

  /// What one launch has: memory for its calling thread, which no other launch has, and for the threads of
  /// the pool, of which only one launch runs on them at a time.
  class Loan {
   public:
    /// Throws std::bad_alloc where nobody reserved as much, or where more threads launch at once than usual.
    Loan(Scratch& scratch, std::int64_t bytes);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    char* of(int thread) const noexcept;

   private:
    Set* set_ = nullptr;
    char* own_ = nullptr;
    std::atomic<bool>* lent_ = nullptr;
    ScratchBlock extra_;
  };

 private:
  Set* newest(std::int64_t bytes);

  const int helpers_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Set>>
      sets_;  // each twice as large as the last, or more; kept for who has a loan
  std::atomic<Set*> newest_ = nullptr;
};

}  // namespace fuse::runtime::cpu
