// SPDX-License-Identifier: Apache-2.0
#include "repro.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common.hpp"
#include "compile/pipeline/experiments.hpp"

namespace fuse::fusec {
namespace {

constexpr const char* repro_name = "/repro.json";

template <class T>
T within(const nlohmann::json& value, int most) {
  const int number = value.get<int>();
  if (number < 0 || number > most)
    throw nlohmann::json::other_error::create(0, "an option out of range", &value);
  return static_cast<T>(number);
}

CompileOptions options_of(const nlohmann::json& json) {
  CompileOptions options;
  options.relaxed_rounding = json.at("relaxed_rounding");
  options.merge_gemms = json.at("merge_gemms");
  options.experiments =
      experiments({.cut = within<Cut>(json.at("cut"), static_cast<int>(Cut::one_op)),
                   .layers = json.at("layers"),
                   .stitch = within<Stitch>(json.at("stitch"), static_cast<int>(Stitch::full)),
                   .schemes = within<Schemes>(json.at("schemes"), static_cast<int>(Schemes::astitch)),
                   .fault = json.at("fault")});
  options.search = json.value("search", false);
  options.grid_barriers = json.at("grid_barriers");
  options.max_inputs = json.at("max_inputs");
  options.versions = json.value("versions", 1);
  options.builds = json.value("builds", 1);
  options.streams = json.at("streams");
  options.decisions = json.value("decisions", "");
  options.skip_unfit_decisions = json.value("skip_unfit_decisions", false);
  return options;
}

/// A GPU is scheduled for as the profile of its generation.
std::string profile_of(const nlohmann::json& json) {
  const std::string target = json.at("target");
  for (const std::string_view name : target_profile_names()) {
    if (name == target) return target;
  }
  const int arch = json.at("arch");
  return arch >= 90 ? "h200" : arch >= 80 ? "a100" : "v100";
}

}  // namespace

bool is_repro(const std::string& path) { return std::filesystem::is_regular_file(path + repro_name); }

std::string replay(RunOptions& options) {
  const std::string folder = options.graph.file;
  std::ifstream in(folder + repro_name);
  try {
    const nlohmann::json json = nlohmann::json::parse(in);
    options.graph.file = folder + "/graph.fuse";
    options.graph.profile = profile_of(json);
    options.graph.compile = options_of(json.at("options"));
    for (const auto& [name, value] : json.at("dims").items()) {
      options.graph.dims.push_back(fmt::format("{}={}", name, value.get<std::int64_t>()));
    }
    for (const nlohmann::json& input : json.at("inputs")) {
      const std::string file = input.at("file");
      if (file.find('/') != std::string::npos)
        throw nlohmann::json::other_error::create(0, "a file elsewhere", &input);
      options.inputs.push_back(fmt::format("{}={}/{}", input.at("name").get<std::string>(), folder, file));
    }
    if (options.device == "auto" || options.device == "emulated") {
      options.device = "emulated";
      options.checked = true;
    }
    return json.at("failed");
  } catch (const nlohmann::json::exception& error) {
    const std::string_view what = error.what();  // "[json.exception.type_error.302] type must be string"
    user_error(ErrorCode::parse, fmt::format("{}{} is no repro of fuse: {}", folder, repro_name,
                                             what.substr(what.find(']') + 2)));
  }
}

}  // namespace fuse::fusec
