// SPDX-License-Identifier: Apache-2.0
#include "fuzz/corpus.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fuse::fuzz {

namespace fs = std::filesystem;

std::vector<std::string> corpus_files(const std::string& folder) {
  std::vector<std::string> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".fuse") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Case load_corpus(const std::string& path) {
  std::ifstream in(path);
  if (!in.is_open()) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return parse_case(text.str(), fs::path(path).filename().string());
}

std::string write_corpus(const std::string& folder, const std::string& name, const Case& c,
                         const std::string& comment) {
  fs::create_directories(folder);
  const std::string path = (fs::path(folder) / (name + ".fuse")).string();
  std::ofstream out(path);
  out << to_text(c, comment);
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
  return path;
}

}  // namespace fuse::fuzz
