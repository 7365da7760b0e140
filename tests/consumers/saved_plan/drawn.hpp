// A run on values that both programs draw alike, and what came of it as a number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <fuse/session.hpp>
#include <stdexcept>
#include <vector>

/// The cpu device where the argument at `index` asks for it, else the emulated one.
inline fuse::Device device_of(int argc, char** argv, int index) {
  if (argc <= index) return fuse::Device::emulated();
  if (std::strcmp(argv[index], "cpu") != 0) throw std::invalid_argument("the device is 'cpu', or not given");
  return fuse::Device::cpu();
}

inline std::uint64_t run_on_drawn(const fuse::Executable& executable) {
  fuse::DimValues dims;
  for (const fuse::Slot& slot : executable.slots()) {
    for (const fuse::Dim& dim : slot.dims) {
      for (const fuse::Dim& symbol : dim.symbols()) dims[std::string(symbol.name())] = 2;
    }
  }
  fuse::Session session(executable, dims);
  const std::vector<fuse::Slot>& slots = executable.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == fuse::Slot::Kind::output) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(session.prepared().bytes(i)));
    for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {  // the graphs have f32 and i32 alone
      const auto drawn = static_cast<std::int32_t>((at * 2654435761u + i) % 200);
      const float real = static_cast<float>(drawn - 100) / 100;
      const bool floating = slots[i].dtype == fuse::f32;
      std::memcpy(bytes.data() + at, floating ? static_cast<const void*>(&real) : &drawn, 4);
    }
    session.set(slots[i].name, bytes);
  }
  session.run();
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a, of all outputs
  for (const fuse::Slot& slot : slots) {
    if (slot.kind != fuse::Slot::Kind::output) continue;
    for (const std::byte byte : session.get(slot.name)) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    }
  }
  return hash;
}
