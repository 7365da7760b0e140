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

/// A reader and a kill at any time find the old text or the new one, whole: the new one is written beside the
/// file and takes its name. What is no regular file, such as /dev/stdout, is written directly.
inline void write_text(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool direct = fs::exists(path, error) && !fs::is_regular_file(path, error);
  const std::string target =
      direct || !fs::is_symlink(path, error) ? path : fs::canonical(path, error).string();
  const std::string beside = direct ? path : target + ".part";
  std::ofstream file(beside, std::ios::binary);
  file << text;
  file.close();
  if (file && !direct) fs::rename(beside, target, error);
  if (!file || error) throw std::runtime_error("cannot write " + path);
}

}  // namespace fuse::bench
