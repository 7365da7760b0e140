// CandidateBuilder: compiles variants on a thread of its own, one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "os/background_maker.hpp"
#include "runtime/explore/dispatch_order.hpp"
#include "runtime/explore/variant.hpp"

namespace fuse::runtime {

/// A variant, or why there is none.
struct BuiltVariant {
  std::shared_ptr<Variant> variant{};  ///< null: it could not be made
  std::string failed{};                ///< why
  ErrorCode code = ErrorCode::ok;
};

/// What the function makes; what it throws is why there is nothing.
BuiltVariant built_by(const std::function<std::shared_ptr<Variant>()>& make);

class CandidateBuilder {
 public:
  using Built = BuiltVariant;
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

  explicit CandidateBuilder(Make make)
      : maker_([make = std::move(make)](const Wanted& wanted) {
          return built_by([&] { return make(wanted); });
        }) {}

  /// As BackgroundMaker has them.
  ///@{
  void ask(const Wanted& wanted) { maker_.ask(wanted); }
  std::unique_ptr<Built> take(const Wanted& wanted) { return maker_.take(wanted); }
  void wait() { maker_.wait(); }
  ///@}

 private:
  BackgroundMaker<Wanted, Built> maker_;
};

}  // namespace fuse::runtime
