// FunctionRef: a reference to something that can be called, for the length of a call; SharedFunction: a
// function that is kept. <functional> would make every program that includes fuse a quarter longer to
// compile. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace fuse::detail {

/// For the library itself.
template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<Result, F&, Args...>)
      FunctionRef(F&& function)  // NOLINT: a lambda stands where one is taken
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

/// A function, or none; copies share it. It may be called from several threads.
template <class Signature>
class SharedFunction;

template <class Result, class... Args>
class SharedFunction<Result(Args...)> {
 public:
  SharedFunction() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, SharedFunction> &&
           std::is_invocable_r_v<Result, const std::decay_t<F>&, Args...>)
      SharedFunction(F&& function)  // NOLINT: a lambda stands where one is taken
      : function_(std::make_shared<Holder<std::decay_t<F>>>(std::forward<F>(function))) {}

  explicit operator bool() const { return function_ != nullptr; }
  Result operator()(Args... args) const { return function_->call(std::forward<Args>(args)...); }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual Result call(Args... args) const = 0;
  };
  template <class F>
  struct Holder final : Callable {
    explicit Holder(F&& held) : function(std::move(held)) {}
    explicit Holder(const F& held) : function(held) {}
    Result call(Args... args) const override { return function(std::forward<Args>(args)...); }
    const F function;
  };
  std::shared_ptr<const Callable> function_;
};

}  // namespace fuse::detail
