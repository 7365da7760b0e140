// Specialiser: runs a graph with symbols, and compiles dims that come often once more, with numbers in place
// of the symbols (docs/versions.md). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/device.hpp>
#include <fuse/dim_values.hpp>
#include <fuse/error.hpp>
#include <fuse/executable.hpp>
#include <fuse/explore.hpp>
#include <fuse/export.hpp>
#include <fuse/function_ref.hpp>
#include <fuse/graph.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fuse {
inline namespace v0 {

/// What a specialiser knows of some dims.
struct SpecialisedDims {
  /// What their runs take.
  enum class State : std::uint8_t {
    counted,    ///< the executable for all dims; they have not come often enough
    compiling,  ///< the executable for all dims, until their static build is ready
    special,    ///< their static build
    refused,    ///< the executable for all dims, while these dims are remembered; `why` says why
  };
  DimValues dims{};              ///< the values of the symbols
  std::int64_t runs = 0;         ///< how often they came since they are counted
  State state = State::counted;  ///< what their next run takes
  std::string why{};             ///< refused: why they have no static build
  double compile_seconds = 0;    ///< special: how long it was compiled, on another thread
  double usual_seconds = 0;      ///< a run of the executable for all dims, as the cost model predicts it
  double special_seconds = 0;    ///< special: a run of the static build, as the cost model predicts it
};
/// The name of the enumerator: "special". "?" for a value that is none.
FUSE_COMPILER_API std::string_view to_string(SpecialisedDims::State);

/// Which dims get a static build. Specialiser throws invalid_argument for a value that is out of range.
struct SpecialiseOptions {
  int runs = 100;  ///< runs after which dims get one; at least 1
  int most = 8;  ///< static builds that are kept, at least 1; one more replaces the one that ran longest ago
  /// keep: a static build has the results of the executable for all dims, bit for bit: it adds in the same
  /// order. any: it may add in the order that is fastest for these dims.
  Bits bits = Bits::keep;
  /// Called between two runs when dims get a static build, lose it, or are refused one: by the thread of the
  /// run that follows, before it is enqueued. Other threads may run meanwhile, and call it
  /// for other dims. It must not throw.
  detail::SharedFunction<void(const SpecialisedDims&)> announce{};
};

/// Runs a graph for any dims, from one executable, and gives dims that come often a static build
/// (BladeDISC, 2 and 5.2: what a compiler that knows the shape would make). It is compiled on a thread of its
/// own; runs go on meanwhile, and the next run after it takes it. Dims whose static build fails to compile,
/// would be slower by the cost model, or, with Bits::keep, would have other bits are refused.
///
/// It keeps a workspace for each stream and each of the last 32 dims, and packed parameters for each static
/// build. Threads may share it, each with a stream.
class FUSE_COMPILER_API Specialiser {
 public:
  /// Compiles the graph for all dims. Throws what compile throws, and invalid_argument for options out of
  /// range and for the reference device, which has no kernels.
  Specialiser(const Graph& graph, const Device& device, const SpecialiseOptions& specialise = {},
              const CompileOptions& compile = {});
  /// Moves it. The other one may then only be destroyed or assigned to.
  ///@{
  Specialiser(Specialiser&&) noexcept;
  Specialiser& operator=(Specialiser&&) noexcept;
  ///@}
  /// Waits for a static build that is being compiled.
  ~Specialiser();

  const std::vector<Slot>& slots() const;  ///< the same for every build; see Executable::slots
  /// The executable for all dims: its `prepare` tells the shapes and bytes of slots.
  const Executable& executable() const;

  /// Like Prepared::run for these dims, but for the workspace and packed memory, which are the specialiser's
  /// own. The first run with new parameters packs them and waits for that; so does the first one of a static
  /// build, which is not taken while `stream` is being captured. Reports what prepare throws, too.
  Status run(Stream& stream, const DimValues& dims, std::span<const BufferView> buffers) noexcept;
  /// Call it after a parameter's buffer was written: what is packed of parameters is packed again by the next
  /// run. Call it only when no run is in flight.
  void parameters_changed();

  /// The 32 dims that came last, the latest first.
  std::vector<SpecialisedDims> dims() const;
  /// Waits until no static build is being compiled. For tools and tests, which would rather wait.
  void wait_for_compiler();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace fuse
