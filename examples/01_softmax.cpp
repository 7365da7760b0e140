// 1. Softmax: build a graph, compile it for a device, run it.
//
// A graph says what is computed; nothing runs while it is built. Softmax is five ops (maximum, subtract,
// exponential, sum, divide) and ends up as a few fused kernels. B is symbolic: one compilation serves every
// number of rows. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <fuse/fuse.hpp>
#include <span>
#include <vector>

#include "support/options.hpp"
#include "support/run.hpp"

namespace {

constexpr std::size_t rows = 37, columns = 4096;

fuse::Graph softmax_graph() {
  fuse::Graph graph("softmax");
  const fuse::Dim B = graph.dim("B", {.min = 0, .max = 1 << 20, .hint = rows});
  const fuse::Tensor x = graph.input("x", fuse::f32, {B, columns});
  graph.output("y", fuse::softmax(x));
  return graph;
}

int softmax() {
  // Tools and examples may take what is there: the first GPU, else the cpu device, which compiles the same
  // graph to native code for the cores of this machine. An application names its device instead.
  const fuse::Device device = fuse::Device::auto_select();
  std::printf("%s (%s)\n", device.name().c_str(), device.why().c_str());

  // A session allocates the buffers, copies data in by name, runs, waits, and copies results out.
  fuse::Session session(fuse::compile(softmax_graph(), device), {{"B", rows}});
  std::vector<float> x(rows * columns), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 251) / 25;
  session.set("x", std::as_bytes(std::span(x)));
  session.run();
  session.get("y", std::as_writable_bytes(std::span(y)));

  // The rows of a softmax add up to 1.
  double worst = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += static_cast<double>(y[row * columns + i]);
    if (row < 3) {
      std::printf("row %zu: %.4g %.4g %.4g ... sum %.7f\n", row, static_cast<double>(y[row * columns]),
                  static_cast<double>(y[row * columns + 1]), static_cast<double>(y[row * columns + 2]), sum);
    }
    worst = std::fmax(worst, std::fabs(sum - 1));
  }
  std::printf("%lld kernels for %zu rows of %zu; sums are off 1 by at most %.2g\n",
              static_cast<long long>(session.prepared().launches()), rows, columns, worst);
  return worst < 1e-5 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const example::Options options(argc, argv, "softmax: rows of 4096 floats on the device that is there",
                                   {{"--print-graph", "", "", "print the graph's .fuse text and end"}});
    if (!options.flag("--print-graph")) return softmax();
    std::printf("%s", softmax_graph().to_string().c_str());
    return 0;
  });
}
