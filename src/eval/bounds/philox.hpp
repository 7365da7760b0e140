// Philox 4x32-10, a counter-based generator (Salmon and others, SC 2011): one round function, ten rounds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace fuse::runtime::reference {

using Words = std::array<std::uint32_t, 4>;

constexpr Words philox(Words counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0],
                        b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// The numbering that every device shares: counter = (block of the element, stream, offset), key = seed.
constexpr Words random_words(std::int64_t seed, std::int64_t offset, std::int64_t stream,
                             std::int64_t block) {
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(offset)},
                static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

/// Element `i` of a draw in [0, 1): f32 takes one word of a block of four, f64 two.
constexpr double uniform_f32(std::int64_t seed, std::int64_t offset, std::int64_t stream, std::int64_t i) {
  const Words words = random_words(seed, offset, stream, i >> 2);
  return static_cast<double>(words[static_cast<std::size_t>(i & 3)] >> 8) * 0x1p-24;
}
constexpr double uniform_f64(std::int64_t seed, std::int64_t offset, std::int64_t stream, std::int64_t i) {
  const Words words = random_words(seed, offset, stream, i >> 1);
  const std::size_t at = static_cast<std::size_t>(i & 1) * 2;
  const std::uint64_t bits = std::uint64_t{words[at + 1]} << 32 | words[at];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace fuse::runtime::reference
