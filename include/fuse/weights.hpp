// Weights: the values of a model's parameters, by name, bound once and passed to run.
//
//   const fuse::Weights weights = fuse::Weights::from_safetensors("model.safetensors");
//   const fuse::Weights::View w = weights.at("layer.0.weight");
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuse/dtype.hpp>
#include <fuse/export.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuse {
inline namespace v0 {

/// An immutable set of named tensors. Copying shares it. All members may be called from any number of threads
/// on one object, as long as none assigns to that object.
///
/// Views and the pointers in them are valid as long as any copy of the Weights they came from.
///
/// A safetensors file is mapped, not read: pages are loaded when they are first touched, and shared by all
/// processes that map the file. Replace such a file by renaming another over it; one that is changed in place
/// changes the weights, and one that is shortened makes the process fault.
class FUSE_COMPILER_API Weights {
 public:
  /// Dense, row-major, little endian; a bool is one byte that holds 0 or 1. The bytes of a safetensors file
  /// are where the file has them, and need not be aligned for the dtype: copy them, or read with memcpy. All
  /// others are aligned to 16 bytes.
  struct View {
    DType dtype = f32;                   ///< the element type
    std::vector<std::int64_t> shape{};   ///< the extents
    std::span<const std::byte> bytes{};  ///< the elements
  };

  /// No tensors.
  Weights();

  /// The tensors of the file. A tensor whose type fuse does not have is listed by `names`, and looking it up
  /// throws `unsupported`. Throws Error: io, file_format.
  static Weights from_safetensors(const std::string& path);

  /// One tensor per file: pairs of a name and the path of an .npy file; bfloat16 is the void type '<V2', as
  /// ml_dtypes makes numpy save it. Fortran order is transposed. Throws Error: io, file_format,
  /// duplicate_name, out_of_memory.
  static Weights from_npy(const std::vector<std::pair<std::string, std::string>>& names_and_paths);

  /// The tensor of this name; nullptr if there is none. Throws unsupported where fuse does not have its
  /// dtype.
  const View* find(std::string_view name) const&;
  const View* find(std::string_view name) const&& = delete;  ///< the bytes would be gone with the temporary
  /// The tensor of this name. Throws unknown_name, with the names nearest to it as a hint, and unsupported as
  /// above.
  View at(std::string_view name) const&;
  View at(std::string_view name) const&& = delete;  ///< the bytes would be gone with the temporary
  /// The names of all tensors, sorted.
  std::vector<std::string> names() const;
  /// The number of tensors, of any dtype.
  std::size_t size() const noexcept;

 private:
  friend class WeightsBuilder;
  struct Data;
  explicit Weights(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

/// Weights from memory. Belongs to one thread at a time.
class FUSE_COMPILER_API WeightsBuilder {
 public:
  /// A builder of no tensors.
  WeightsBuilder();
  /// Moves what was added; the other builder is empty afterwards.
  ///@{
  WeightsBuilder(WeightsBuilder&&) noexcept;
  WeightsBuilder& operator=(WeightsBuilder&&) noexcept;
  ///@}
  ~WeightsBuilder();

  /// Copies the bytes. Throws duplicate_name, invalid_extent, buffer_size where the bytes are not what the
  /// shape and dtype ask for, and invalid_argument for a bool that is neither 0 nor 1; then nothing is added.
  WeightsBuilder& add(std::string name, DType dtype, std::vector<std::int64_t> shape,
                      std::span<const std::byte> bytes);
  /// Everything added so far; the builder is empty afterwards.
  Weights build();

 private:
  std::unique_ptr<Weights::Data> data_;
};

}  // namespace v0
}  // namespace fuse
