// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/debug_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>

#include "base/access.hpp"
#include "os/environment.hpp"
#include "os/mapped_file.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/execute/step_launch.hpp"
#include "tensors/host_tensor.hpp"
#include "tensors/npy.hpp"

namespace fuse::runtime {
namespace {

/// The values of the slots that are no outputs; empty where values are not kept.
using Inputs = std::vector<std::optional<HostTensor>>;

Inputs read_values(const Prepared::Impl& p, std::span<const BufferView> buffers, Queue& queue) {
  Backend& backend = *backend_of(p.executable->device);
  const std::vector<Slot>& slots = p.executable->slots();
  Inputs inputs(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::output || !p.runs[i]) continue;
    HostTensor tensor = HostTensor::make(slots[i].dtype, *p.shapes[i]);
    if (p.bytes[i] > 0) {
      backend.download(queue, tensor.data.data(), buffers[i].address, p.bytes[i]).throw_if_failed();
    }
    inputs[i] = std::move(tensor);
  }
  queue.synchronize().throw_if_failed();
  return inputs;
}

std::string in_json(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

void write(const std::string& path, std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file_atomically(path, {&bytes, 1});
}

/// A folder of its own in `directory`, named by the graph.
std::string make_folder(const std::string& directory, const std::string& graph) {
  namespace fs = std::filesystem;
  fs::create_directories(directory);
  std::string name = graph.substr(0, 64);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  }
  for (int i = 0;; ++i) {
    std::string path = fmt::format("{}/{}-{}-{}", directory, name, ::getpid(), i);
    if (fs::create_directory(path)) return path;
  }
}

std::string write_inputs(const Prepared::Impl& p, const Inputs& inputs, const std::string& folder) {
  std::string list;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const std::string file = fmt::format("{}.npy", i);
    std::string bytes = npy_header(*inputs[i]);
    bytes.append(reinterpret_cast<const char*>(inputs[i]->data.data()), inputs[i]->data.size());
    write(folder + '/' + file, bytes);
    list += fmt::format("{}\n    {{\"name\": {}, \"file\": \"{}\"}}", list.empty() ? "" : ",",
                        in_json(p.executable->slots()[i].name), file);
  }
  return list;
}

/// The folder that it is in.
std::string write_repro(const std::string& directory, const Prepared::Impl& p, const Inputs& inputs,
                        std::string_view failure) {
  const Executable::Impl& executable = *p.executable;
  const std::string folder = make_folder(directory, executable.signature().name);
  write(folder + "/graph.fuse", executable.origin->graph());
  std::string dims;
  for (const auto& [name, value] : p.dims) {
    dims += fmt::format("{}{}: {}", dims.empty() ? "" : ", ", in_json(name), value);
  }
  const std::string list = write_inputs(p, inputs, folder);
  const Target& target = backend_of(executable.device)->target();
  write(folder + "/repro.json",
        fmt::format("{{\n  \"failed\": {},\n  \"device\": {},\n  \"target\": {},\n"
                    "  \"arch\": {},\n  \"dims\": {{{}}},\n  \"options\": {},\n  \"inputs\": [{}{}]\n}}\n",
                    in_json(failure), in_json(executable.device.name()), in_json(target.name), target.arch,
                    dims, executable.origin->options(), list, list.empty() ? "" : "\n  "));
  return folder;
}

/// "repro in DIR/softmax-12-0", or why there is none: the run's failure stays what it is.
std::string told_of_repro(const std::string& directory, const Prepared::Impl& p, const Inputs& inputs,
                          std::string_view failure) {
  try {
    return "repro in " + write_repro(directory, p, inputs, failure);
  } catch (const std::exception& error) {
    return std::string("no repro: ") + error.what();
  }
}

}  // namespace

std::unique_ptr<DebugRun> DebugRun::make() {
  const std::string repros = value_of(Variable::repro);
  if (repros.empty() && value_of(Variable::sync) != "1") return nullptr;
  auto made = std::make_unique<DebugRun>();
  made->repros_ = repros;
  made->keeps_values_ = !repros.empty() && value_of(Variable::repro_data) == "1";
  return made;
}

Status DebugRun::run(const Prepared::Impl& p, std::span<const BufferView> buffers,
                     std::span<const Argument> arguments, Queue& queue) const noexcept {
  try {
    Inputs inputs;
    if (keeps_values_) inputs = read_values(p, buffers, queue);
    for (const Command& command : p.commands.list) {
      const ReadyStep& step = p.steps[command.step];
      Status done = enqueue_step(step, arguments.data() + step.arguments.first,
                                 *backend_of(p.executable->device), queue);
      if (done) done = queue.synchronize();
      if (done) continue;
      const Status failed = of_step(step, done);
      if (repros_.empty()) return failed;
      return status(failed.code(), "{}; {}", failed.message(),
                    told_of_repro(repros_, p, inputs, failed.message()));
    }
    return Status();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::exception& error) {
    return {ErrorCode::io, error.what()};
  }
}

}  // namespace fuse::runtime
