// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <fuse/error.hpp>
#include <fuse/weights.hpp>
#include <map>
#include <numeric>
#include <optional>

#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "tensors/host_tensor.hpp"
#include "tensors/npy.hpp"
#include "tensors/safetensors.hpp"

namespace fuse {
inline namespace v0 {

struct Weights::Data {
  std::map<std::string, View, std::less<>> views;
  std::optional<runtime::SafetensorsFile> file;  // what the views point into, and the tensors without one
  std::vector<std::vector<std::byte>> owned;     // moving the outer vector leaves the bytes in place

  void add(std::string name, runtime::HostTensor tensor) {
    if (views.contains(name)) {
      throw Error({.kind = ErrorKind::user,
                   .code = ErrorCode::duplicate_name,
                   .message = "two weights are named " + in_quotes(name)});
    }
    owned.push_back(std::move(tensor.data));
    views.emplace(std::move(name), View{tensor.dtype, std::move(tensor.shape), owned.back()});
  }
};

Weights::Weights() : Weights(std::make_shared<const Data>()) {}
Weights::Weights(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Weights Weights::from_safetensors(const std::string& path) {
  auto data = std::make_shared<Data>();
  data->file.emplace(path);
  for (const auto& [name, entry] : data->file->tensors()) {
    if (entry.dtype)
      data->views.emplace_hint(data->views.end(), name, View{*entry.dtype, entry.shape, entry.bytes});
  }
  return Weights(std::move(data));
}

Weights Weights::from_npy(const std::vector<std::pair<std::string, std::string>>& names_and_paths) {
  auto data = std::make_shared<Data>();
  for (const auto& [name, path] : names_and_paths) data->add(name, runtime::read_npy(path));
  return Weights(std::move(data));
}

const Weights::View* Weights::find(std::string_view name) const& {
  if (!data_) return nullptr;
  if (const auto found = data_->views.find(name); found != data_->views.end()) return &found->second;
  if (!data_->file) return nullptr;
  const auto entry = data_->file->tensors().find(name);
  if (entry == data_->file->tensors().end()) return nullptr;
  // It is there and has no view, so this throws.
  runtime::supported_dtype(entry->second, name);
  return nullptr;
}

Weights::View Weights::at(std::string_view name) const& {
  if (const View* view = find(name)) return *view;
  const std::vector<std::string> all = names();
  std::string hint = did_you_mean(all, name);
  if (all.empty()) hint = "there are no weights at all";
  throw Error({.kind = ErrorKind::user,
               .code = ErrorCode::unknown_name,
               .message = "no weight is named " + in_quotes(name) + " among " + std::to_string(all.size()),
               .hint = std::move(hint)});
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> names;
  if (!data_) return names;
  names.reserve(size());
  // A file's index has every tensor, those without a view too.
  if (data_->file) {
    for (const auto& [name, entry] : data_->file->tensors()) names.push_back(name);
  } else {
    for (const auto& [name, view] : data_->views) names.push_back(name);
  }
  return names;
}

std::size_t Weights::size() const noexcept {
  if (!data_) return 0;
  return data_->file ? data_->file->tensors().size() : data_->views.size();
}

WeightsBuilder::WeightsBuilder() = default;
WeightsBuilder::WeightsBuilder(WeightsBuilder&&) noexcept = default;
WeightsBuilder& WeightsBuilder::operator=(WeightsBuilder&&) noexcept = default;
WeightsBuilder::~WeightsBuilder() = default;

WeightsBuilder& WeightsBuilder::add(std::string name, DType dtype, std::vector<std::int64_t> shape,
                                    std::span<const std::byte> bytes) {
  runtime::HostTensor tensor{.dtype = dtype, .shape = std::move(shape)};
  const std::uint64_t wanted = static_cast<std::uint64_t>(tensor.element_count()) * size_of(dtype);
  const std::string type = runtime::type_text(dtype, tensor.shape);
  if (wanted != bytes.size()) {
    throw Error({.kind = ErrorKind::user,
                 .code = ErrorCode::buffer_size,
                 .message = "weight " + in_quotes(name) + " of type " + type + " should take " +
                            std::to_string(wanted) + " bytes and was given " + std::to_string(bytes.size())});
  }
  if (dtype == boolean && std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; })) {
    throw Error({.kind = ErrorKind::user,
                 .code = ErrorCode::invalid_argument,
                 .message = "weight " + in_quotes(name) + " has a bool that is neither 0 nor 1"});
  }
  tensor.data.assign(bytes.begin(), bytes.end());
  if (!data_) data_ = std::make_unique<Weights::Data>();
  data_->add(std::move(name), std::move(tensor));
  return *this;
}

Weights WeightsBuilder::build() {
  if (!data_) return Weights();
  return Weights(std::shared_ptr<const Weights::Data>(std::move(data_)));
}

}  // namespace v0
}  // namespace fuse
