// 3. A transformer: many ops become few kernels, and the result is checked.
//
// Reads a text as bytes and runs a byte-level language model over windows of it: embedding, pre-norm blocks
// with causal attention, logits, and the mean cross-entropy of the next byte. The weights are random (or from
// a .safetensors file), so the loss is that of guessing: about ln 256 = 5.55.
//
// The result is compared with the exact one. How far may it be off? Any evaluation in f32 or bf16 rounds; op
// by op evaluation in the same types shows by how much. Four times that is the bound.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <fuse/fuse.hpp>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/internals.hpp"
#include "support/options.hpp"
#include "support/run.hpp"
#include "support/transformer.hpp"

#ifndef FUSE_EXAMPLE_TEXT
#define FUSE_EXAMPLE_TEXT "LICENSE"
#endif

namespace {

using example::Model;
using example::Options;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) Options::fail("cannot read " + path);
  return text;
}

/// `batch` windows spread over the text; each token's label is the byte after it.
struct Windows {
  Windows(const std::string& text, const Model& model) {
    const auto window = static_cast<std::size_t>(model.window), batch = static_cast<std::size_t>(model.batch);
    if (text.size() <= window) {
      Options::fail("the text has " + std::to_string(text.size()) +
                    " bytes; a window and the byte after it need " + std::to_string(window + 1));
    }
    const std::size_t last = text.size() - window - 1;
    for (std::size_t b = 0; b < batch; ++b) {
      const std::size_t start = batch == 1 ? 0 : last * b / (batch - 1);
      for (std::size_t t = 0; t < window; ++t) {
        tokens.push_back(static_cast<unsigned char>(text[start + t]));
        labels.push_back(static_cast<unsigned char>(text[start + t + 1]));
      }
    }
  }
  std::vector<std::int32_t> tokens, labels;
};

Model read_model(const Options& options) {
  Model model;
  model.blocks = options.integer("--blocks", 0, 1000);
  model.hidden = options.integer("--hidden", 1, 65536);
  model.heads = options.integer("--heads", 1, 1024);
  model.window = options.integer("--window", 1, 65536);
  model.batch = options.integer("--batch", 1, 4096);
  const std::string& dtype = options.text("--dtype");
  if (dtype != "f32" && dtype != "f16" && dtype != "bf16") {
    Options::fail("--dtype " + dtype + ": f32, f16 or bf16");
  }
  model.dtype = *fuse::parse_dtype(dtype);
  if (model.hidden % model.heads != 0) Options::fail("--hidden must be a multiple of --heads");
  return model;
}

fuse::Device open_device(const Options& options) {
  const std::string& name = options.text("--device");
  const std::string& profile = options.text("--profile");
  fuse::Device::Emulated emulated{.checked = options.flag("--checked")};
  if (!profile.empty()) emulated.profile = profile;
  const bool asks_for_it = emulated.checked || !profile.empty();
  if (name == "emulated" || (name == "auto" && asks_for_it)) return fuse::Device::emulated(emulated);
  if (asks_for_it) Options::fail("--checked and --profile are of the emulated device");
  if (name == "auto") return fuse::Device::auto_select();
  if (name == "cpu") return fuse::Device::cpu();
  if (name == "cuda") return fuse::Device::cuda();
  if (name == "reference") return fuse::Device::reference();
  Options::fail("--device " + name + ": auto, cpu, cuda, emulated or reference");
}

void row(const char* name, const std::string& text) { std::printf("%-18s%s\n", name, text.c_str()); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::int64_t parameter_count(const fuse::Executable& executable) {
  std::int64_t count = 0;
  for (const fuse::Slot& slot : executable.slots()) {
    if (slot.kind == fuse::Slot::Kind::parameter) count += fuse::product(slot.dims).constant();
  }
  return count;
}

double mean_loss(const std::vector<std::byte>& bytes, fuse::DType dtype) {
  // The loss is f32: cross_entropy of half precision logits is too.
  if (dtype != fuse::f32 || bytes.size() != sizeof(float)) Options::fail("the loss is not one f32");
  float loss = 0;
  std::memcpy(&loss, bytes.data(), sizeof loss);
  return static_cast<double>(loss);
}

/// Prints how exact the results are; false above the bound.
bool report_accuracy(const std::map<std::string, example::Accuracy>& accuracy) {
  row("exact loss", number("%.7f", accuracy.at("loss").exact_mean));
  bool ok = true;
  for (const auto& [name, a] : accuracy) {
    const double bound = 4 * a.op_by_op;
    // The loss is one number, which op by op evaluation may hit by chance: only the logits are judged.
    const bool judged = name == "logits";
    const bool inside = a.largest_error <= bound;
    row((name + " error").c_str(),
        number("%.3g", a.largest_error) + (judged ? "  bound " + number("%.3g", bound) + " = 4 x " : "  ") +
            (judged ? "" : "op by op ") + number("%.3g", a.op_by_op) + (judged ? " op by op" : "") +
            (!judged  ? ""
             : inside ? "  OK"
                      : "  ABOVE THE BOUND"));
    ok &= inside || !judged;
  }
  return ok;
}

int transformer(const Options& options) {
  const Model model = read_model(options);
  const fuse::Graph graph = example::ModelGraph(model).build();
  if (options.flag("--print-graph")) {
    std::printf("%s", graph.to_string().c_str());
    return 0;
  }
  const std::string text = read_text(options.text("--text"));
  const Windows windows(text, model);
  const fuse::Device device = open_device(options);

  // Compile once; the batch is symbolic, so one executable would serve every batch.
  auto compiling = std::make_unique<example::Progress>("compiling");
  const fuse::Executable executable = fuse::compile(graph, device);
  const fuse::DimValues dims = {{"B", model.batch}};
  fuse::Session session(executable, dims);
  const double compile_seconds = compiling->seconds();
  compiling.reset();

  // Weights are an immutable object, bound once. A file is mapped, not read.
  const fuse::Weights weights =
      options.text("--weights").empty()
          ? example::random_weights(executable,
                                    static_cast<std::uint64_t>(options.integer("--seed", 0, INT64_MAX)))
          : fuse::Weights::from_safetensors(options.text("--weights"));
  if (!options.text("--save-weights").empty()) example::save_weights(options.text("--save-weights"), weights);
  session.set(weights);
  session.set("tokens", std::as_bytes(std::span(windows.tokens)));
  session.set("labels", std::as_bytes(std::span(windows.labels)));

  auto running = std::make_unique<example::Progress>("running");
  session.run();
  const double run_seconds = running->seconds();
  running.reset();

  const std::int64_t tokens = model.batch * model.window;
  row("device", device.name() + " (" + device.why() + ")");
  if (device.kind() == fuse::DeviceKind::cpu) row("processor", first_line(device.report()));
  row("text", options.text("--text") + ", " + std::to_string(text.size()) + " bytes");
  row("tokens",
      std::to_string(model.batch) + " x " + std::to_string(model.window) + " = " + std::to_string(tokens));
  row("parameters", std::to_string(parameter_count(executable)) + " " + std::string(to_string(model.dtype)));
  row("kernels launched", std::to_string(session.prepared().launches()));
  row("GEMMs", std::to_string(session.prepared().gemms()));
  row("compile time", number("%.2f s", compile_seconds));
  row("run time", number("%.3f s", run_seconds));
  const fuse::Slot& loss_slot = executable.slots()[executable.output_slot("loss")];
  row("loss", number("%.7f", mean_loss(session.get("loss"), loss_slot.dtype)));
  std::fflush(stdout);

  example::Progress evaluating("evaluating the reference twice");
  example::HostData data;
  for (const std::string& name : weights.names()) data[name] = weights.at(name);
  const std::vector<std::int64_t> shape = {model.batch, model.window};
  data["tokens"] = {fuse::i32, shape, std::as_bytes(std::span(windows.tokens))};
  data["labels"] = {fuse::i32, shape, std::as_bytes(std::span(windows.labels))};
  const auto accuracy = example::accuracy_of(
      graph, data, dims, {{"logits", session.get("logits")}, {"loss", session.get("loss")}});
  return report_accuracy(accuracy) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    return transformer(
        Options(argc, argv,
                "transformer_block: a byte-level transformer over a text, checked against the exact result",
                {{"--text", "FILE", FUSE_EXAMPLE_TEXT, "the text"},
                 {"--blocks", "N", "4", "transformer blocks"},
                 {"--hidden", "N", "256", "width"},
                 {"--heads", "N", "4", "attention heads"},
                 {"--window", "N", "256", "tokens of a window"},
                 {"--batch", "N", "4", "windows"},
                 {"--dtype", "T", "f32", "of weights and activations: f32, f16 or bf16"},
                 {"--seed", "S", "1", "of the random weights"},
                 {"--weights", "FILE", "", "take the weights from a .safetensors file"},
                 {"--save-weights", "FILE", "", "write the weights to a .safetensors file"},
                 {"--device", "D", "auto", "auto, cpu, cuda, emulated or reference"},
                 {"--profile", "P", "", "the GPU that the emulated device stands for; h200 if not given"},
                 {"--checked", "", "", "the emulated device finds races and bad accesses"},
                 {"--print-graph", "", "", "print the graph's .fuse text and end"}}));
  });
}
