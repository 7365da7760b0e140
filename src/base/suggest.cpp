// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fuse {
namespace {

// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(a.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < b.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < a.size(); ++j) {
      const std::size_t substituted = diagonal + (a[j] != b[i]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[a.size()];
}

std::string list(std::string text, const std::vector<std::string>& names, std::size_t most) {
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += std::string(i ? ", '" : " '") + names[i] + '\'';
  return text + (names.size() > most ? ", ..." : "");
}

}  // namespace

std::string did_you_mean(const std::vector<std::string>& names, std::string_view wanted) {
  constexpr std::size_t longest = 128, shown = 3;  // the distance costs the product of the lengths
  std::vector<std::pair<std::size_t, std::string>> found;
  const std::size_t limit = std::max<std::size_t>(2, wanted.size() / 5);
  for (const std::string& name : names) {
    if (name.size() > longest || wanted.size() > longest) continue;
    const bool prefixed = name.ends_with('.' + std::string(wanted)) || wanted.ends_with('.' + name);
    const std::size_t distance = prefixed ? 0 : edit_distance(name, wanted);
    // Two letters that both differ are two names, not a misspelling.
    if (distance <= limit && distance + 1 < std::max(name.size(), wanted.size())) {
      found.emplace_back(distance, name);
    }
  }
  if (found.empty()) return {};
  std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<std::string> near;
  for (auto& [distance, name] : found) near.push_back(std::move(name));
  near.resize(std::min(near.size(), shown));
  return list("did you mean", near, shown) + '?';
}

std::string nearest_names(const std::vector<std::string>& names, std::string_view wanted) {
  const std::string near = did_you_mean(names, wanted);
  return near.empty() && !names.empty() ? list("there are", names, 8) : near;
}

}  // namespace fuse
