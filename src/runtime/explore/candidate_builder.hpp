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

#include "runtime/explore/variant.hpp"

namespace fuse::runtime {

class CandidateBuilder {
 public:
  struct Built {
    std::shared_ptr<Variant> variant{};  ///< null: it could not be made
    std::string failed{};                ///< why
    ErrorCode code = ErrorCode::ok;
  };
  using Make = std::function<std::shared_ptr<Variant>(const std::string& decisions)>;

  explicit CandidateBuilder(Make make);
  CandidateBuilder(const CandidateBuilder&) = delete;
  CandidateBuilder& operator=(const CandidateBuilder&) = delete;
  ~CandidateBuilder();

  /// Asks for a variant, unless it was asked for.
  void ask(const std::string& decisions);
  /// What was made of it, once; null: nothing yet.
  std::unique_ptr<Built> take(const std::string& decisions);
  /// Waits until nothing is asked for.
  void wait();

 private:
  void work();

  const Make make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> asked_;      // the first is being made
  std::map<std::string, Built> made_;  // and not taken
  bool ends_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace fuse::runtime
