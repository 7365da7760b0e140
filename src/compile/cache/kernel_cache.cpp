// SPDX-License-Identifier: Apache-2.0
#include "compile/cache/kernel_cache.hpp"

#include <utility>

#include "compile/cache/compile_cache.hpp"
#include "ir/graph/hash.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime {
namespace {

std::string text_of(const codegen::Source& source, std::size_t kernel) {
  const std::size_t begin = source.starts[kernel];
  const bool last = kernel + 1 == source.starts.size();
  return source.body.substr(begin, last ? std::string::npos : source.starts[kernel + 1] - begin);
}

/// The source with these of its kernels alone. Lines are those of the whole text.
codegen::Source part_of(const codegen::Source& source, const std::vector<std::size_t>& kernels) {
  codegen::Source part;
  part.name = source.name;
  part.prelude = source.prelude;
  part.primitives = source.primitives;
  for (const std::size_t kernel : kernels) {
    part.kernels.push_back(source.kernels[kernel]);
    part.starts.push_back(part.body.size());
    part.body += text_of(source, kernel);
  }
  return part;
}

/// Each kernel of a binary by itself, in order.
std::vector<std::shared_ptr<const KernelImage>> images_of(Binary binary) {
  std::vector<std::shared_ptr<const KernelImage>> result;
  for (Binary::Image& image : binary.images) {
    const auto bytes = std::make_shared<const std::vector<char>>(std::move(image.bytes));
    for (std::uint32_t i = 0; i < image.kernels; ++i)
      result.push_back(std::make_shared<const KernelImage>(bytes, image.first + i, binary.maker));
  }
  return result;
}

}  // namespace

KernelKey::KernelKey(std::string text, std::string build) : text_(std::move(text)), build_(std::move(build)) {
  hash_ = ir::Hasher().add(std::string_view(text_)).add(std::string_view(build_)).value();
}

Binary build_new_kernels(const Toolchain& toolchain, const codegen::Source& source, int threads) {
  if (toolchain.binds_lines() || source.starts.size() != source.kernels.size())
    return toolchain.build(source, threads);
  KernelCache& cache = toolchain.cache().kernels;
  std::vector<KernelKey> keys;
  std::vector<std::shared_ptr<const KernelImage>> images;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < source.kernels.size(); ++i) {
    keys.emplace_back(text_of(source, i), toolchain.key());
    images.push_back(cache.find(keys.back()));
    if (!images.back()) missing.push_back(i);
  }
  if (!missing.empty()) {
    const auto made = images_of(toolchain.build(part_of(source, missing), threads));
    for (std::size_t i = 0; i < missing.size(); ++i) {
      images[missing[i]] = made.at(i);
      cache.insert(std::move(keys[missing[i]]), made[i]);
    }
  }
  Binary binary{.name = source.name, .maker = {}, .kernels = source.kernels, .images = {}};
  const KernelImage* before = nullptr;
  for (const std::shared_ptr<const KernelImage>& image : images) {
    if (before && before->bytes == image->bytes && before->number + 1 == image->number) {
      ++binary.images.back().kernels;
    } else {
      binary.images.push_back({*image->bytes, 1, image->number});
    }
    before = image.get();
    binary.maker = image->maker;
  }
  return binary;
}

}  // namespace fuse::runtime
