// Bound and Session: running a compiled graph with buffers by name.
//
//   const fuse::Bound model = fuse::compile(g, device).bind(weights);
//   fuse::Session session = model.session({{"B", 64}});
//   session.set("x", x);                            // a std::vector<float>, say
//   session.run();
//   const auto y = session.get<float>("y");
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fuse/device.hpp>
#include <fuse/executable.hpp>
#include <fuse/export.hpp>
#include <fuse/host_data.hpp>
#include <fuse/weights.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace fuse {
inline namespace v0 {

class Session;

/// An executable with the values of its parameters in device memory, packed once (Prepared::pack). Immutable;
/// copies share all of it, and so do the sessions that are made of it, in any number of threads. A move
/// copies.
class FUSE_COMPILER_API Bound {
 public:
  /// Another handle to the same values.
  ///@{
  Bound(const Bound&) = default;
  Bound& operator=(const Bound&) = default;
  ///@}
  /// Uploads every parameter. Throws unbound for a parameter that the weights lack, dtype_mismatch and
  /// shape_mismatch, which name the parameter, and out_of_memory.
  Bound(Executable executable, const Weights& weights);
  /// Takes the parameters from a model of another graph on the same device, by name: both share the memory.
  /// Prefill and decode are two such graphs. Throws as above, and invalid_argument for another device.
  Bound(Executable executable, const Bound& other);

  /// The executable that the values belong to.
  const Executable& executable() const;
  /// A session with these parameters. Throws what Session's constructor throws.
  Session session(const DimValues& dims = {}, const WorkspaceOptions& options = {}) const;

 private:
  friend class Session;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Runs with one set of dims, with buffers by name. The constructor allocates all buffers and the workspace;
/// `use` puts the caller's memory in the place of a buffer, which is then given back. One thread at a time.
/// Each function waits until its work is done, except those that take a stream.
class FUSE_COMPILER_API Session {
 public:
  /// With parameters of its own, which `set` gives values. Throws what Executable::prepare throws, and
  /// out_of_memory.
  explicit Session(Executable executable, const DimValues& dims = {}, const WorkspaceOptions& options = {});
  /// With the parameters of the model.
  explicit Session(const Bound& bound, const DimValues& dims = {}, const WorkspaceOptions& options = {});

  /// Waits for the last run. A session that was moved from can be assigned to and destroyed.
  ~Session();
  /// Takes all of another session.
  Session(Session&&) noexcept;
  /// Waits for the last run of this session, then takes all of another one.
  Session& operator=(Session&&) noexcept;

  /// The executable made ready for the dims of the session.
  const Prepared& prepared() const { return prepared_; }

  /// Copies elements into an input or a parameter. Their number and type must be its own; bytes are taken for
  /// elements of the right type. Throws unknown_name, buffer_size, dtype_mismatch, and invalid_argument for a
  /// parameter of a Bound.
  void set(std::string_view name, const HostData& elements);
  /// As above, for a list of elements: `set("x", {1.0f, 2.0f})`.
  template <detail::Element T>
  void set(std::string_view name, std::initializer_list<T> elements) {
    set(name, HostData(elements.begin(), elements.size()));
  }
  /// As above, but the copy is work of the stream: the elements must stay as they are until the stream has
  /// passed it. A temporary that owns its elements does not compile.
  template <class C>
  requires detail::ElementRange<std::remove_reference_t<C>>
  void set(Stream& stream, std::string_view name, C&& elements) {
    static_assert(
        std::is_lvalue_reference_v<C> || detail::is_span<std::remove_cvref_t<C>>,
        "the stream would read the elements after they are gone with their temporary: give it a name");
    set_later(stream, name, HostData(elements));
  }
  /// Sets every parameter from the weights, checked by dtype and shape; throws unbound for one that is
  /// missing.
  void set(const Weights& weights);

  /// Puts an input or an output into memory of the device that is the caller's. The memory must be long
  /// enough and 16-byte aligned. An input counts as set; an output has no value until a run makes one. Where
  /// an input and an output have one name, it is the input. An output with a donor follows its donor. Throws
  /// unknown_name, buffer_size, misaligned, and invalid_argument for a parameter and for an output with a
  /// donor.
  void use(std::string_view name, BufferView memory);
  /// As above, and keeps the buffer alive. Buffers of other sessions can be used, so that one step reads what
  /// another has written, without a copy.
  void use(std::string_view name, const Buffer& buffer);
  /// The buffer of an input, parameter or output. Throws unknown_name; invalid_argument for one that is in
  /// the caller's memory.
  Buffer buffer(std::string_view name) const;

  /// Packs the parameters (see Prepared::pack) unless that was done since the last was set; run does it too.
  void pack();
  /// Runs and waits. Throws unbound when an input or parameter was never set, and what run reports.
  void run();
  /// Enqueues a run: as above, but it does not wait. `get` waits for it.
  void run(Stream& stream);
  /// Enqueues a run after `use` of each of the pairs: `run(stream, {{"x", x}, {"y", y}})`.
  void run(Stream& stream, std::initializer_list<std::pair<std::string_view, BufferView>> buffers);

  /// Copies an output back: as many elements as it has, of its type. Waits for the last run. Throws unbound
  /// before a successful run, unknown_name, buffer_size, dtype_mismatch.
  void get(std::string_view name, const HostSpan& elements) const;
  /// The elements of an output. Throws dtype_mismatch where they are no T.
  template <detail::Element T>
  std::vector<T> get(std::string_view name) const {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in a row: use get<std::byte>");
    std::vector<T> elements(static_cast<std::size_t>(bytes_of(name)) / sizeof(T));
    get(name, elements);
    return elements;
  }
  /// The bytes of an output. Throws as above.
  std::vector<std::byte> get(std::string_view name) const;

  /// As Workspace::measure: from now on `measured` has the profile of the last run.
  void measure() { workspace_.measure(); }
  /// As Workspace::measured: no value until all of the last run is over.
  std::optional<Profile> measured() const;
  /// The workspace of its runs.
  const Workspace& workspace() const { return workspace_; }

 private:
  void set_later(Stream& stream, std::string_view name, const HostData& elements);
  std::size_t settable(std::string_view name, const HostData& elements) const;
  std::size_t any_slot(std::string_view name) const;
  void allocate(const WorkspaceOptions& options);
  void forget(std::size_t place);
  void check_device(const std::shared_ptr<runtime::Backend>& backend, std::string_view what) const;
  std::int64_t bytes_of(std::string_view output) const;
  void check_set(bool inputs) const;
  void enqueue(Stream& stream);
  void wait() const;

  Executable executable_;
  std::shared_ptr<const Bound::Impl> bound_;  ///< null: the parameters are the session's own
  Prepared prepared_;
  mutable Stream stream_;
  std::vector<Buffer> buffers_;     ///< by slot; empty where the memory is the caller's, or the donor's
  std::vector<BufferView> views_;   ///< by slot
  std::vector<char> set_;           ///< by slot: whether an input or a parameter has a value
  mutable std::vector<char> made_;  ///< by slot: whether an output has what a run made
  Workspace workspace_;
  Buffer packed_;
  mutable std::optional<Stream> in_flight_;  ///< the stream of a run that nobody has waited for
  bool is_packed_ = false;
};

}  // namespace v0
}  // namespace fuse
