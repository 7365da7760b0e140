// The file around what is saved: a name, a format, a length and a checksum, so that no damage goes unseen.
//
//   bytes 0..7    "fuseplan", or what else the file is
//   8..11         format
//   12..15        0
//   16..23        length of the file
//   24..31        checksum of all that is before and after these eight bytes
//   32..          what is kept
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fuse::runtime {

inline constexpr std::size_t container_header_bytes = 32;

/// `magic` has eight characters.
std::string seal(std::string_view magic, std::uint32_t format, std::string_view content);
/// The content. Throws Error{runtime, file_format}, which names the file and says what is wrong with it; and
/// Error{runtime, incompatible_version} for another format.
std::string_view unseal(std::string_view magic, std::uint32_t format, std::string_view file,
                        const std::string& name);

/// Reads all of a file. Throws io; file_format where it has more than `most` bytes.
std::string read_whole(const std::string& path, std::uint64_t most);

}  // namespace fuse::runtime
