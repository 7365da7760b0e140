// SPDX-License-Identifier: Apache-2.0
#include "plan/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>

namespace fuse::codegen {

std::vector<SourceChunk> chunks(const Source& source, std::size_t most) {
  const std::size_t parts = std::clamp<std::size_t>(most, 1, std::max<std::size_t>(source.starts.size(), 1));
  std::vector<SourceChunk> result = {{.first = 0,
                                      .last = source.kernels.size(),
                                      .begin = 0,
                                      .end = source.body.size(),
                                      .line = source.body_line()}};
  for (std::size_t part = 1; part < parts; ++part) {
    const SourceChunk before = result.back();
    const std::size_t wanted = std::max(source.body.size() / parts * part, before.begin + 1);
    const auto at = std::lower_bound(source.starts.begin(), source.starts.end(), wanted);
    if (at == source.starts.end()) break;
    const auto kernel = static_cast<std::size_t>(at - source.starts.begin());
    const auto lines = std::count(source.body.begin() + static_cast<std::ptrdiff_t>(before.begin),
                                  source.body.begin() + static_cast<std::ptrdiff_t>(*at), '\n');
    result.back().last = kernel;
    result.back().end = *at;
    result.push_back({.first = kernel,
                      .last = before.last,
                      .begin = *at,
                      .end = before.end,
                      .line = before.line + static_cast<int>(lines)});
  }
  return result;
}

std::string launch_bounds(int block_threads, int blocks) {
  return fmt::format("FUSE_KERNEL({}, {})", block_threads, blocks);
}

void aim_at(std::string& text, KernelInfo& kernel, int blocks) {
  const std::string bounds = launch_bounds(kernel.block_threads, kernel.min_blocks_per_sm);
  const std::string name = ' ' + kernel.name + '(';
  std::size_t at = text.find('\n' + bounds + ' ');
  while (at != std::string::npos &&
         text.substr(at, text.find('\n', at + 1) - at).find(name) == std::string::npos)
    at = text.find('\n' + bounds + ' ', at + 1);
  if (at == std::string::npos) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("the text has no {}{}", bounds, name)});
  }
  text.replace(at + 1, bounds.size(), launch_bounds(kernel.block_threads, blocks));
  kernel.min_blocks_per_sm = blocks;
}

Source::Source() = default;
Source::Source(const Source&) = default;
Source::Source(Source&&) noexcept = default;
Source& Source::operator=(const Source&) = default;
Source& Source::operator=(Source&&) noexcept = default;
Source::~Source() = default;

}  // namespace fuse::codegen
