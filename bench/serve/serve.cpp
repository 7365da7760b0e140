// SPDX-License-Identifier: Apache-2.0
#include "serve/serve.hpp"

#include <chrono>
#include <ctime>
#include <exception>
#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <stdexcept>

#include "base/access.hpp"
#include "cases/case_check.hpp"
#include "cases/case_gemms.hpp"
#include "cases/case_run.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "serve/served_case.hpp"
#include "serve/thread_copy.hpp"
#include "timing.hpp"

namespace fuse::bench {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double process_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::int64_t positive(const Json& request, const char* name) {
  const auto value = request.at(name).get<std::int64_t>();
  if (value < 1) throw std::runtime_error(std::string(name) + " has to be at least 1");
  return value;
}

class Server {
 public:
  explicit Server(int threads)
      : device_(Device::cpu({.threads = threads})), threads_(threads), timer_(device_) {}

  Json answer(const Json& request) {
    static const std::map<std::string, Json (Server::*)(const Json&), std::less<>> known = {
        {"about", &Server::about}, {"data", &Server::data},     {"load", &Server::load},
        {"check", &Server::check}, {"run", &Server::run},       {"gemms", &Server::gemms},
        {"copy", &Server::copy},   {"shapes", &Server::shapes}, {"drop", &Server::drop}};
    const std::string what = request.at("do");
    const auto found = known.find(what);
    if (found == known.end()) throw std::runtime_error("there is no request '" + what + "'");
    return (this->*found->second)(request);
  }

 private:
  ServedCase& loaded() {
    if (!served_) throw std::runtime_error("no case is loaded");
    return *served_;
  }

  Json about(const Json&) {
    return {{"name", "fuse"}, {"version", ""}, {"device", device_.name()}, {"threads", threads_}};
  }

  Json data(const Json& request) { return {{"inputs", write_inputs(case_of(request), request.at("dir"))}}; }

  Json load(const Json& request) {
    drop(request);
    case_ = case_of(request);
    const auto start = std::chrono::steady_clock::now();
    const Executable executable = compile(builder_of(case_.builder).build(case_.dtype, case_.dims), device_);
    double start_s = seconds_since(start);
    served_.emplace(executable, DimValues{});
    start_s += served_->prepare_seconds() + served_->pack_seconds();
    const auto first = std::chrono::steady_clock::now();
    served_->run();
    start_s += seconds_since(first);
    const CaseTraffic traffic = case_traffic(executable);
    const Prepared& prepared = served_->prepared();
    return {{"start_s", start_s},
            {"outputs", served_->write_outputs(request.at("out"))},
            {"bytes", {{"read", traffic.read}, {"written", traffic.written}, {"moved", traffic.moved}}},
            {"counts",
             {{"kernels", stages_of(executable).source.kernels.size()},
              {"launches", prepared.launches()},
              {"gemms", prepared.gemms()}}}};
  }

  /// The outputs in memory are those of later runs, so the first run's are read again.
  Json check(const Json& request) {
    const CaseTraffic traffic = case_traffic(loaded().executable());
    const std::size_t slot = loaded().executable().output_slot("y");
    runtime::HostTensor y =
        runtime::HostTensor::make(loaded().executable().slots()[slot].dtype, loaded().prepared().shape(slot));
    std::ifstream file(request.at("file").get<std::string>(), std::ios::binary);
    file.read(reinterpret_cast<char*>(y.data.data()), static_cast<std::streamsize>(y.data.size()));
    if (!file) throw std::runtime_error("cannot read " + request.at("file").get<std::string>());
    const CaseError error = check_case(case_, y, traffic.elements, gemm_flops(loaded().executable()),
                                       request.at("elements").get<double>());
    return {{"over_bound", error.over_bound ? figure(*error.over_bound) : Json(nullptr)},
            {"checked", error.checked},
            {"ok", error.ok},
            {"why", error.text}};
  }

  Json run(const Json& request) {
    ServedCase& served = loaded();
    const std::int64_t runs = positive(request, "runs");
    const double before = process_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < runs; ++i) served.run();
    const double seconds = seconds_since(start);
    return {{"seconds", seconds}, {"cpu_seconds", process_seconds() - before}};
  }

  Json gemms(const Json&) {
    const Executable& executable = loaded().executable();
    const double flops = gemm_flops(executable);
    if (flops == 0) return {{"seconds", 0}, {"flops", 0}};
    return {{"seconds", time_gemms(executable, timer_).median}, {"flops", flops}};
  }

  /// Preparing for a length is part of its time, since a caller with new lengths pays it; inputs are not.
  Json shapes(const Json& request) {
    drop(request);
    const auto start = std::chrono::steady_clock::now();
    const Case c = case_of(request);
    const Executable executable = compile(builder_of(c.builder).build(c.dtype, c.dims), device_);
    const double compile_s = seconds_since(start);
    double cold_s = compile_s, steady_s = 0;
    for (const Json& length : request.at("lengths")) {
      ServedCase served(executable, {{"L", length.get<std::int64_t>()}});
      const auto first = std::chrono::steady_clock::now();
      served.run();
      cold_s += served.prepare_seconds() + seconds_since(first);
      const auto second = std::chrono::steady_clock::now();
      served.run();
      steady_s += seconds_since(second);
    }
    return {{"compile_s", compile_s}, {"cold_s", cold_s}, {"steady_s", steady_s}};
  }

  Json copy(const Json& request) {
    const std::int64_t half = positive(request, "bytes") / 2;
    if (half != copied_) {
      from_ = device_.allocate(half);
      to_ = device_.allocate(half);
      copied_ = half;
      const std::vector<std::byte> data(static_cast<std::size_t>(half), std::byte{61});
      from_.upload(data);
      to_.upload(data);
    }
    return {{"seconds", time_thread_copy(request.at("how").get<std::string>(), to_.address(), from_.address(),
                                         half, threads_, positive(request, "runs"))}};
  }

  Json drop(const Json&) {
    served_.reset();
    from_ = to_ = Buffer();
    copied_ = 0;
    return Json::object();
  }

  const Device device_;
  const int threads_;
  DeviceTimer timer_;
  Case case_;
  std::optional<ServedCase> served_;
  Buffer from_, to_;  // of copies
  std::int64_t copied_ = 0;
};

}  // namespace

int serve(std::istream& in, std::ostream& out, int threads) {
  Server server(threads);
  for (std::string line; std::getline(in, line);) {
    Json answer;
    try {
      answer = server.answer(Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    out << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace fuse::bench
