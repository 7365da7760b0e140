// SPDX-License-Identifier: Apache-2.0
#include "serve/served_case.hpp"

#include <stdexcept>
#include <utility>

#include "base/access.hpp"
#include "cases/case_data.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::bench {
namespace {

Json described(const std::string& name, DType dtype, const Extents& shape, const std::string& file) {
  return {{"name", name}, {"dtype", std::string(to_string(dtype))}, {"shape", shape}, {"file", file}};
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace

Case case_of(const Json& request) {
  const Json& given = request.at("case");
  const std::string dtype = given.at("dtype");
  const auto known = parse_dtype(dtype);
  if (!known) throw std::runtime_error("unknown dtype " + dtype);
  Case c{.name = given.at("name"),
         .builder = given.at("builder"),
         .dims = given.at("dims").get<Extents>(),
         .tags = {}};
  c.dtype = *known;
  if (builder_of(c.builder).axes != c.dims.size()) {
    throw std::runtime_error(c.name + ": " + c.builder + " has " +
                             std::to_string(builder_of(c.builder).axes) + " dims");
  }
  return c;
}

ServedCase::ServedCase(const Executable& executable, const DimValues& dims)
    : executable_(executable),
      start_(std::chrono::steady_clock::now()),
      prepared_(executable_.prepare(dims)),
      stream_(executable_.device().stream()),
      workspace_(prepared_.workspace()),
      prepare_seconds_(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count()) {
  const Device& device = executable_.device();
  const std::vector<Slot>& slots = executable_.slots();
  packed_ = device.allocate(prepared_.packed_bytes());
  views_.resize(slots.size());
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].donor) continue;
    views_[slot] = buffers_.emplace_back(device.allocate(prepared_.bytes(slot))).view();
    if (slots[slot].kind != Slot::Kind::output) buffers_.back().upload(data_of(sized(slot)).data);
  }
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].donor) views_[slot] = views_[*slots[slot].donor];
  }
  const auto start = std::chrono::steady_clock::now();
  prepared_.pack(stream_, views_, packed_.view()).throw_if_failed();
  stream_.synchronize().throw_if_failed();
  pack_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Slot ServedCase::sized(std::size_t slot) const {
  Slot result = executable_.slots()[slot];
  result.dims.clear();
  for (const std::int64_t extent : prepared_.shape(slot)) result.dims.emplace_back(extent);
  return result;
}

void ServedCase::run() {
  prepared_.run(stream_, views_, workspace_, packed_.view()).throw_if_failed();
  stream_.synchronize().throw_if_failed();
}

Json ServedCase::write_outputs(const std::string& prefix) const {
  Json list = Json::array();
  const std::vector<Slot>& slots = executable_.slots();
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].kind != Slot::Kind::output) continue;
    const std::string file = prefix + '.' + slots[slot].name + ".bin";
    const auto* const bytes = static_cast<const std::byte*>(views_[slot].address);
    write_bytes(file, {bytes, static_cast<std::size_t>(prepared_.bytes(slot))});
    list.push_back(described(slots[slot].name, slots[slot].dtype, prepared_.shape(slot), file));
  }
  return list;
}

Json write_inputs(const Case& c, const std::string& dir) {
  const Graph graph = builder_of(c.builder).build(c.dtype, c.dims);
  Json list = Json::array();
  for (const ir::Node& node : ir_of(graph).nodes) {
    if (node.op != ir::Op::input && node.op != ir::Op::parameter) continue;
    const Slot slot{node.op == ir::Op::input ? Slot::Kind::input : Slot::Kind::parameter,
                    ir::attr<ir::NameAttr>(node).name, node.type.dtype, node.type.dims};
    const std::string file = dir + '/' + slot.name + ".bin";
    write_bytes(file, data_of(slot).data);
    list.push_back(described(slot.name, slot.dtype, shape_of(slot), file));
  }
  return list;
}

}  // namespace fuse::bench
