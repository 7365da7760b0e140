// Calls of the C interface, drawn from bytes: wrong sizes, wrong slots, wrong order; handles are not misused.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/c_api.h>

#include <cstdint>
#include <cstring>
#include <fuse/fuse.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "guided/targets.hpp"
#include "os/temporary_folder.hpp"

namespace fuse::guided {
namespace {

/// A plan of a GEMM and a softmax of rows of any length, compiled once.
class Loaded {
 public:
  Loaded() {
    Graph g("small");
    const Dim B = g.dim("B", {.min = 1, .max = 16}), N = g.dim("N", {.min = 1, .max = 64});
    g.output("y", softmax(g.input("x", f32, {B, N})));
    g.output("z", matmul(g.input("a", f32, {B, 4}), g.parameter("w", f32, {4, 4})));
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/plan";
    compile(g, Device::emulated({.profile = "tiny3", .threads = 1, .optimization = 0}), {.cache = false})
        .save(path);
    fuse_compiler_emulated_options options{};
    options.struct_size = sizeof options;
    options.profile = "tiny3";
    options.threads = 1;
    if (fuse_compiler_device_emulated(&options, &device) != FUSE_COMPILER_OK ||
        fuse_compiler_plan_load(path.c_str(), device, &plan) != FUSE_COMPILER_OK) {
      throw std::runtime_error(fuse_compiler_last_error());
    }
  }
  fuse_compiler_device* device = nullptr;
  fuse_compiler_plan* plan = nullptr;
};

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return empty() ? 0 : static_cast<std::uint8_t>(bytes_[at_++]); }
  std::uint64_t number() {
    const int width = byte() % 9;
    std::uint64_t value = 0;
    for (int i = 0; i < width; ++i) value = value << 8 | byte();
    return value;
  }
  std::string name() {
    static const char* const names[] = {"B", "N", "x", "y", "z", "a", "w", "nobody"};
    return names[byte() % std::size(names)];
  }
  /// Zero, but for what the bytes say; the size is any.
  template <class Struct>
  std::vector<unsigned char> structure() {
    std::vector<unsigned char> bytes(sizeof(Struct) + 64, 0);
    const std::size_t size = byte() % 4 == 0 ? number() % (bytes.size() + 1) : sizeof(Struct);
    std::memcpy(bytes.data(), &size, sizeof size);
    for (int i = byte() % 4; i > 0; --i) {
      // Not where pointers lie: those are the caller's to get right.
      const std::size_t field = sizeof(Struct) / 2 + byte() % (bytes.size() - sizeof(Struct) / 2);
      bytes[field] = byte();
    }
    return bytes;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

/// What a failed call leaves: a text, and nothing else.
void check(int status) {
  if (status == FUSE_COMPILER_OK) return;
  if (status == FUSE_COMPILER_INTERNAL || std::strlen(fuse_compiler_last_error()) == 0) {
    throw std::logic_error(std::string("status ") + fuse_compiler_status_name(status) + ": " +
                           fuse_compiler_last_error());
  }
}

class Calls {
 public:
  Calls(const Loaded& loaded, Bytes bytes) : loaded_(loaded), bytes_(bytes) {}
  ~Calls() {
    fuse_compiler_workspace_free(workspace_);
    fuse_compiler_prepared_free(prepared_);
    for (fuse_compiler_buffer* buffer : buffers_) fuse_compiler_buffer_free(buffer);
    fuse_compiler_stream_free(stream_);
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void run() {
    for (int i = 0; i < 40 && !bytes_.empty(); ++i) step();
  }

 private:
  void step() {
    switch (bytes_.byte() % 10) {
      case 0:
        return prepare();
      case 1:
        return add_buffer();
      case 2:
        if (!stream_) check(fuse_compiler_stream_new(loaded_.device, &stream_));
        return;
      case 3:
        return make_workspace();
      case 4:
        return run_plan();
      case 5:
        return slot();
      case 6: {
        std::size_t found = 0;
        const std::string name = bytes_.name();
        check(fuse_compiler_plan_find_input(loaded_.plan, name.c_str(), &found));
        check(fuse_compiler_plan_find_output(loaded_.plan, name.c_str(), &found));
        return;
      }
      case 7:
        return transfer();
      case 8: {
        std::vector<unsigned char> info = bytes_.structure<fuse_compiler_run_info>();
        check(fuse_compiler_prepared_info(prepared_, reinterpret_cast<fuse_compiler_run_info*>(info.data())));
        return;
      }
      default:
        check(fuse_compiler_stream_synchronize(stream_));
    }
  }

  void prepare() {
    std::vector<std::string> names;
    std::vector<const char*> texts;
    std::vector<std::int64_t> values;
    for (int i = bytes_.byte() % 4; i > 0; --i) {
      names.push_back(bytes_.name());
      values.push_back(static_cast<std::int64_t>(bytes_.number()));
    }
    for (const std::string& name : names) texts.push_back(name.c_str());
    fuse_compiler_prepared* made = nullptr;
    check(fuse_compiler_prepare(loaded_.plan, texts.data(), values.data(), texts.size(), &made));
    if (!made) return;
    fuse_compiler_workspace_free(workspace_);
    workspace_ = nullptr;
    fuse_compiler_prepared_free(prepared_);
    prepared_ = made;
  }

  void add_buffer() {
    if (buffers_.size() > 8) return;
    fuse_compiler_buffer* made = nullptr;
    check(fuse_compiler_buffer_new(loaded_.device, static_cast<std::int64_t>(bytes_.number() % 100'000),
                                   &made));
    if (made) buffers_.push_back(made);
  }

  void make_workspace() {
    std::vector<unsigned char> options(sizeof(fuse_compiler_workspace_options), 0);
    auto* const own = reinterpret_cast<fuse_compiler_workspace_options*>(options.data());
    own->struct_size = bytes_.byte() % 4 == 0 ? bytes_.number() % (sizeof *own + 1) : sizeof *own;
    own->mode = bytes_.byte() % 5 - 1;
    fuse_compiler_workspace* made = nullptr;
    check(fuse_compiler_workspace_new(prepared_, own, &made));
    if (!made) return;
    fuse_compiler_workspace_free(workspace_);
    workspace_ = made;
  }

  fuse_compiler_view view() {
    const std::size_t which = bytes_.byte();
    if (which >= buffers_.size()) return {};
    fuse_compiler_view view{};
    check(fuse_compiler_buffer_view(buffers_[which], &view));
    if (bytes_.byte() % 4 == 0) view.bytes = static_cast<std::int64_t>(bytes_.number());
    // The emulated device knows its memory: what lies outside of a buffer is refused, not touched.
    if (bytes_.byte() % 4 == 0) view.address = static_cast<char*>(view.address) + bytes_.number() % 64;
    return view;
  }

  void run_plan() {
    std::vector<fuse_compiler_view> views;
    for (int i = bytes_.byte() % 7; i > 0; --i) views.push_back(view());
    check(fuse_compiler_run(prepared_, stream_, views.data(), views.size(), workspace_, nullptr));
    check(fuse_compiler_pack(prepared_, stream_, views.data(), views.size(), nullptr));
  }

  void slot() {
    std::vector<unsigned char> info = bytes_.structure<fuse_compiler_slot_info>();
    auto* const out = reinterpret_cast<fuse_compiler_slot_info*>(info.data());
    const std::size_t slot = bytes_.number() % 9;
    check(fuse_compiler_plan_slot(loaded_.plan, slot, out));
    check(fuse_compiler_prepared_slot(prepared_, slot, out));
  }

  void transfer() {
    if (buffers_.empty()) return;
    std::vector<char> host(bytes_.number() % 100'000);
    fuse_compiler_buffer* const buffer = buffers_[bytes_.byte() % buffers_.size()];
    check(fuse_compiler_buffer_upload(buffer, host.data(), host.size()));
    check(fuse_compiler_buffer_download(buffer, host.data(), host.size()));
  }

  const Loaded& loaded_;
  Bytes bytes_;
  fuse_compiler_stream* stream_ = nullptr;
  fuse_compiler_prepared* prepared_ = nullptr;
  fuse_compiler_workspace* workspace_ = nullptr;
  std::vector<fuse_compiler_buffer*> buffers_;
};

}  // namespace

void run_c_api(std::string_view bytes) {
  static const Loaded loaded;  // for as long as the process fuzzes
  Calls(loaded, Bytes(bytes)).run();
}

}  // namespace fuse::guided
