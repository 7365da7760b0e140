// A graph that is worth several streams, and a run of it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <string>
#include <vector>

namespace fuse::test {

/// Branches of small kernels, two in a row, joined at the end: worth several streams. Their loops differ, so
/// that no two of them are stages of one kernel.
inline Graph branches(int count = 3) {
  Graph g("branches");
  const Tensor x = g.input("x", f32, {64, 64});
  Tensor total = x;
  for (int i = 0; i < count; ++i) {
    const Tensor e = exp(slice(x, 1, 0, 64 - i) * (i + 2));
    total = total + sum(e / sum(e, {0}, {.keep_dims = true}), {1}, {.keep_dims = true});
  }
  g.output("y", total);
  return g;
}

/// A prepared run and all that it needs: buffers that nobody has filled, a workspace, a stream.
struct WholeRun {
  explicit WholeRun(const Executable& executable, const DimValues& dims = {},
                    const WorkspaceOptions& options = {})
      : prepared(executable.prepare(dims)),
        workspace(prepared.workspace(options)),
        stream(executable.device().stream()) {
    for (std::size_t i = 0; i < executable.slots().size(); ++i) {
      const auto donor = executable.slots()[i].donor;
      buffers.push_back(donor ? buffers[*donor] : executable.device().allocate(prepared.bytes(i)));
      views.push_back(buffers.back().view());
    }
    packed = executable.device().allocate(prepared.packed_bytes());
  }
  Status run() noexcept { return prepared.run(stream, views, workspace, packed.view()); }

  Prepared prepared;
  Workspace workspace;
  Stream stream;
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  Buffer packed;
};

}  // namespace fuse::test
