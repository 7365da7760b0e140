// SPDX-License-Identifier: Apache-2.0
#include "cases/case_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/access.hpp"
#include "cases/case_check.hpp"
#include "cases/case_data.hpp"
#include "cases/case_gemms.hpp"
#include "compile/pipeline/pipeline.hpp"

namespace fuse::bench {
namespace {

Json spread_or_null(const std::optional<Spread>& spread) {
  return spread ? spread->to_json() : Json(nullptr);
}

Json copy_json(const CopyRate& rate, std::int64_t floor, const Spread& device) {
  return {{"kernel", rate.kernel ? figure(*rate.kernel) : Json(nullptr)},
          {"memcpy", figure(rate.memcpy)},
          {"share", figure(static_cast<double>(floor) / device.median / rate.best())}};
}

/// Steps that zero the counters of grid barriers.
std::int64_t memsets_of(const Executable& executable) {
  const std::vector<schedule::Step>& steps = stages_of(executable).plan.steps;
  return std::count_if(steps.begin(), steps.end(), [](const schedule::Step& step) {
    return std::holds_alternative<schedule::MemsetStep>(step.work);
  });
}

std::string cell(const Json& value, double scale, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>() * scale) : "-";
}

}  // namespace

Json case_header(const Case& c, const std::string& by) {
  return {{"name", c.name},
          {"builder", c.builder},
          {"dtype", std::string(to_string(c.dtype))},
          {"dims", c.dims},
          {"tags", c.tags},
          {"by", by},
          {"status", std::string("ok")},
          {"why", std::string()}};
}

CaseTraffic case_traffic(const Executable& executable) {
  using Kind = schedule::PlanValue::Kind;
  const schedule::Plan& plan = stages_of(executable).plan;
  CaseTraffic traffic;
  const auto bytes = [&](schedule::ValueId id) {
    const schedule::PlanValue& value = plan.values[id];
    return product(value.dims).constant() * static_cast<std::int64_t>(size_of(value.dtype));
  };
  for (schedule::ValueId id = 0; id < plan.values.size(); ++id) {
    const Kind kind = plan.values[id].kind;
    if (kind == Kind::output) traffic.written += bytes(id);
    if (kind == Kind::input || kind == Kind::parameter) traffic.read += bytes(id);
    traffic.elements += static_cast<double>(product(plan.values[id].dims).constant());
  }
  for (const schedule::Step& step : plan.steps) {
    for (const schedule::ValueId id : step.reads) traffic.moved += bytes(id);
    for (const schedule::ValueId id : step.writes) traffic.moved += bytes(id);
  }
  return traffic;
}

Json measure_case(const Case& c, const Device& device, DeviceTimer& timer, CopyYardstick& yardstick,
                  double check_elements, const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Executable executable = compile(builder_of(c.builder).build(c.dtype, c.dims), device, options);
  const std::chrono::duration<double> compiling = std::chrono::steady_clock::now() - start;
  const Prepared prepared = executable.prepare();
  const CaseTraffic traffic = case_traffic(executable);
  const double flops = gemm_flops(executable);
  const std::int64_t sets = timer.sets_past_l2(traffic.read + traffic.written);
  Json row = case_header(c, "fuse");
  row["compile_ms"] = figure(compiling.count() * 1e3);
  {
    BufferSets buffers(executable, prepared, sets);
    const auto run = [&](std::int64_t set) { return buffers.run(prepared, timer.stream(), set); };
    run(0).throw_if_failed();
    timer.stream().synchronize().throw_if_failed();
    const CaseError error =
        check_elements > 0
            ? check_case(c, buffers.output(executable, prepared), traffic.elements, flops, check_elements)
            : CaseError{.over_bound = std::nullopt, .checked = "nothing: as asked"};
    if (!error.ok) {
      row["status"] = "wrong";
      row["why"] = error.text;
    }
    const Spread on_device = timer.device(sets, run);
    row["device_us"] = on_device.to_json();
    row["graph_us"] = spread_or_null(timer.captured(sets, run));
    row["host_us"] = spread_or_null(timer.host(sets, prepared.launches() + prepared.gemms(), run));
    row["buffer_sets"] = sets;
    row["bytes"] = {{"read", traffic.read}, {"written", traffic.written}, {"moved", traffic.moved}};
    row["error"] = {{"over_bound", error.over_bound ? figure(*error.over_bound) : Json(nullptr)},
                    {"checked", error.checked}};
    row["counts"] = {{"kernels", stages_of(executable).source.kernels.size()},
                     {"launches", prepared.launches()},
                     {"memsets", memsets_of(executable)},
                     {"gemms", prepared.gemms()}};
  }
  // The yardsticks, once the case's buffers are free: in the same run, so at the same clocks.
  Spread on_device;
  on_device.median = row["device_us"]["median"].get<double>() * 1e-6;
  row["copy"] =
      copy_json(yardstick.measure(traffic.read, traffic.written), traffic.read + traffic.written, on_device);
  row["gemm"] = nullptr;
  if (flops > 0) {
    const Spread alone = time_gemms(executable, timer);
    row["gemm"] = {
        {"flops", flops}, {"device_us", alone.to_json()}, {"share", figure(alone.median / on_device.median)}};
  }
  return row;
}

std::string case_heading() {
  return fmt::format("{:<40} {:>10} {:>10} {:>9} {:>9} {:>8} {:>8} {:>8}", "case", "device us", "spread us",
                     "host us", "of copy", "of GEMM", "moved x", "error");
}

std::string case_line(const Json& row) {
  std::string line = fmt::format("{:<40} ", row.at("name").get<std::string>());
  if (!row.contains("device_us")) {
    return line + row.at("status").get<std::string>() + ": " + row.at("why").get<std::string>();
  }
  const Json& device = row["device_us"];
  const Json& bytes = row["bytes"];
  const double floor = bytes["read"].get<double>() + bytes["written"].get<double>();
  const Json& host = row["host_us"];
  line += fmt::format(
      "{:>10} {:>10} {:>9} {:>9} {:>8} {:>8} {:>8}", cell(device["median"], 1, "{:.2f}"),
      fmt::format("{:.2f}", device["q3"].get<double>() - device["q1"].get<double>()),
      host.is_object() ? cell(host["median"], 1, "{:.2f}") : "-", cell(row["copy"]["share"], 100, "{:.1f}%"),
      row["gemm"].is_object() ? cell(row["gemm"]["share"], 100, "{:.1f}%") : "-",
      cell(bytes["moved"], 1 / floor, "{:.2f}"), cell(row["error"]["over_bound"], 1, "{:.2f}"));
  const std::string status = row.at("status");
  return status == "ok" ? line : line + "  " + status + ": " + row.at("why").get<std::string>();
}

}  // namespace fuse::bench
