// CandidateBuilder: compiles variants on a thread of its own, one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/explore/dispatch_order.hpp"
#include "runtime/explore/variant.hpp"

namespace fuse::runtime {

class CandidateBuilder {
 public:
  struct Built {
    std::shared_ptr<Variant> variant{};  ///< null: it could not be made
    std::string failed{};                ///< why
    ErrorCode code = ErrorCode::ok;
  };
  struct Wanted {
    std::string decisions{};
    StreamOf streams{};  ///< of what is placed; the steps of a plan are not known before it is made
    DispatchOrder order = DispatchOrder::by_cost;
    ExecutionMode mode = ExecutionMode::streams;
    std::size_t cut = 0;      ///< whose epochs are timed
    bool skip_unfit = false;  ///< the decisions leave something to the cost, and entries may fit nothing
    auto operator<=>(const Wanted&) const = default;
  };
  using Make = std::function<std::shared_ptr<Variant>(const Wanted&)>;

  explicit CandidateBuilder(Make make);
  CandidateBuilder(const CandidateBuilder&) = delete;
  CandidateBuilder& operator=(const CandidateBuilder&) = delete;
  ~CandidateBuilder();

  /// Asks for a variant, unless it was asked for.
  void ask(const Wanted&);
  /// What was made of it, once; null: nothing yet.
  std::unique_ptr<Built> take(const Wanted&);
  /// Waits until nothing is asked for.
  void wait();

 private:
  void work();

  const Make make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Wanted> asked_;      // the first is being made
  std::map<Wanted, Built> made_;  // and not taken
  bool ends_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace fuse::runtime
