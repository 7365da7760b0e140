// JSON as the benchmarks write it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

namespace fuse::bench {

using Json = nlohmann::ordered_json;

/// Six digits: more would pretend to a precision that no sample has. JSON has neither infinity nor NaN.
inline Json figure(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0.0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  const double rounded = std::round(value * scale) / scale;
  return std::isfinite(rounded) ? rounded : value;
}

inline Json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  try {
    return Json::parse(file);
  } catch (const Json::parse_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

/// Where write_text writes: beside a regular file, which the new one replaces; to what is no regular file,
/// such as /dev/stdout, directly.
struct Destination {
  std::string path, beside;
  bool direct = false;

  explicit Destination(const std::string& named) : path(named) {
    std::error_code error;
    direct = std::filesystem::exists(named, error) && !std::filesystem::is_regular_file(named, error);
    if (!direct && std::filesystem::is_symlink(named, error))
      path = std::filesystem::canonical(named, error).string();
    beside = direct ? path : path + ".part";
  }
};

/// Throws std::runtime_error where write_text would: asked before the work whose results are to be written.
inline void require_writable(const std::string& path) {
  const Destination to(path);
  if (!std::ofstream(to.beside, std::ios::binary | std::ios::app))
    throw std::runtime_error("cannot write " + path);
  std::error_code error;
  if (!to.direct) std::filesystem::remove(to.beside, error);
}

/// A reader and a kill at any time find the old text or the new one, whole.
inline void write_text(const std::string& path, const std::string& text) {
  const Destination to(path);
  std::ofstream file(to.beside, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file && !to.direct) std::filesystem::rename(to.beside, to.path, error);
  if (!file || error) throw std::runtime_error("cannot write " + path);
}

}  // namespace fuse::bench
