// SPDX-License-Identifier: Apache-2.0
#include "page/page.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "page/cpu_peers.hpp"
#include "page/model_tables.hpp"
#include "page/sass.hpp"
#include "page/tables.hpp"

namespace fuse::bench {
namespace {

namespace fs = std::filesystem;

/// What a line "{{rows softmax}}" or "{{rows ladder cuda}}" of the template becomes.
std::string expand(const std::string& line, const Results& results, Plots& plots) {
  std::istringstream words(line.substr(2, line.size() - 4));
  std::string what, of, kind;
  words >> what >> of >> kind;
  if (what == "rows") return rows_table(results, of, kind);
  if (what == "counts") return counts_table(results);
  if (what == "cases") return cases_part(results, of, plots);
  if (what == "models") return models_part(results);
  if (what == "sass") return sass_part(results, plots);
  if (what == "cpu_peers") return cpu_peers_part(results, plots);
  if (what == "peers") return peers_part(results);
  throw std::runtime_error("bench/page/page.md: unknown part " + line);
}

void write_plots(const fs::path& folder, const Plots& plots) {
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("stitch_") || name.starts_with("plan_")) continue;  // pictures of plans, by fusec
    if (entry.path().extension() == ".svg") fs::remove(entry.path());        // of results that went
  }
  for (const auto& [name, svg] : plots) write_text((folder / name).string(), svg);
}

}  // namespace

int write_page(const std::string& root) {
  const fs::path base(root);
  const Results results((base / "bench/results").string());
  std::ifstream text(base / "bench/page/page.md");
  if (!text) throw std::runtime_error("cannot read " + (base / "bench/page/page.md").string());
  std::string page;
  Plots plots;
  for (std::string line; std::getline(text, line);) {
    const bool part = line.starts_with("{{") && line.ends_with("}}");
    page += part ? expand(line, results, plots) : line + '\n';
  }
  fs::create_directories(base / "docs");
  write_plots(base / "docs/plots", plots);
  write_text((base / "docs/performance.md").string(), page);
  fmt::print("wrote docs/performance.md and {} plot{} in docs/plots\n", plots.size(),
             plots.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace fuse::bench
