// What fusec doctor says of the cpu device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compile/toolchains/doctor.hpp"
#include "fusec/print/fusec_json.hpp"

namespace fuse::fusec {

/// Adds the cpu device to what was found: a kernel and a GEMM run on it, as on the other devices.
void diagnose_cpu(runtime::Diagnosis& d);

/// Level, threads, caches, compiler and library of GEMMs, one per line; or why the device does not open.
std::string cpu_report();
Json cpu_json();

}  // namespace fuse::fusec
