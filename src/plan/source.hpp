// Source: what code generation hands to a device. One text contains the kernels of one executable (or of a
// batch). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dtype.hpp>
#include <string>
#include <vector>

namespace fuse::codegen {

/// One parameter of a kernel, in the order of its argument list.
struct KernelParam {
  enum class Kind : std::uint8_t { buffer, extent };
  Kind kind = Kind::buffer;
  std::string name;
  DType dtype = f32;     ///< buffers: element type. Extents are i32 or i64.
  bool written = false;  ///< buffers: the kernel stores to it
  bool operator==(const KernelParam&) const = default;
};

/// A line of the text and the op it computes (a barrier names the reduction that needs it).
struct OpLine {
  int line = 0;          ///< 1-based in Source::text()
  std::string op;        ///< "%7 reduce_sum"
  std::string scope;     ///< "layer_norm.mean"
  std::string location;  ///< "main.cpp:4"
  bool barrier = false;
  bool operator==(const OpLine&) const = default;
};

struct KernelInfo {
  std::string name;
  std::vector<KernelParam> params{};
  int block_threads = 0;
  bool communicates = false;  ///< has a barrier or a warp exchange: its threads cannot run one after another
  bool cooperative = false;   ///< has a grid barrier: all of its blocks must be resident at once
  int blocks_per_sm = 1;      ///< blocks per multiprocessor that the registers must suffice for
  int min_blocks_per_sm = 1;  ///< the number in its launch bounds: as many or more
  int cluster = 1;            ///< blocks per cluster, which run at once; 1: no clusters
  std::int64_t shared_bytes = 0;  ///< static shared memory
  std::vector<OpLine> lines{};    ///< ascending by line
  int first_line = 0,
      last_line = 0;  ///< first line of its text, and the line after it; a toolchain says where it looked
  bool operator==(const KernelInfo&) const = default;
};

/// The kernels' text in fuse's device dialect, after the prelude (the primitives it uses, with CUDA bodies).
/// The emulated device replaces the prelude by its own and keeps the body and its line numbers.
struct Source {
  std::string name;                     ///< "softmax": the file is softmax.cu
  std::string prelude;                  ///< CUDA bodies of the primitives that the body uses
  std::string body;                     ///< the kernels
  std::vector<std::string> primitives;  ///< names of the primitives that the body uses, sorted
  std::vector<KernelInfo> kernels;
  /// Where the text of each kernel begins in the body: the text between two of them compiles alone, after
  /// what it calls. Empty: the body must not be cut.
  std::vector<std::size_t> starts{};

  bool operator==(const Source&) const = default;
  std::string text() const { return prelude + body; }
  int body_line() const {  ///< line of the body's first line in text()
    int line = 1;
    for (char c : prelude) line += c == '\n';
    return line;
  }

  // These are compiled once, in the .cpp: in each file that includes this they take longer than the rest.
  Source();
  Source(const Source&);
  Source(Source&&) noexcept;
  Source& operator=(const Source&);
  Source& operator=(Source&&) noexcept;
  ~Source();
};

/// Kernels [first, last) of a source and their text, body[begin, end), which starts at `line` of text().
struct SourceChunk {
  std::size_t first = 0, last = 0;
  std::size_t begin = 0, end = 0;
  int line = 1;
};
/// The source in at most `most` chunks of about the same length, each with one kernel or more; one chunk
/// where the source has no starts.
std::vector<SourceChunk> chunks(const Source&, std::size_t most);

/// The text before the name of a kernel: the threads per block, and the blocks that a multiprocessor must
/// have registers for. Without that number ptxas aims at more blocks, and spills.
std::string launch_bounds(int block_threads, int blocks);
/// Makes the text of the kernel aim at fewer blocks, so that its threads may have more registers. `text`
/// contains the kernel once.
void aim_at(std::string& text, KernelInfo& kernel, int blocks);

}  // namespace fuse::codegen
