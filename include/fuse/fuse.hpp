// Everything: build a graph, compile it for a device, run it. In layers, each of which includes those above
// it:
//   core.hpp        graphs, ops, errors
//   functions.hpp   functions of models: softmax, linear, attention (nn/*.hpp)
//   device.hpp, weights.hpp, executable.hpp, session.hpp, explore.hpp, specialise.hpp, memory.hpp,
//   numerics.hpp
// c_api.h and dlpack.hpp are included by those who need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/core.hpp>
#include <fuse/device.hpp>
#include <fuse/dim_values.hpp>
#include <fuse/executable.hpp>
#include <fuse/executor.hpp>
#include <fuse/explore.hpp>
#include <fuse/functions.hpp>
#include <fuse/host_data.hpp>
#include <fuse/memory.hpp>
#include <fuse/numerics.hpp>
#include <fuse/session.hpp>
#include <fuse/specialise.hpp>
#include <fuse/weights.hpp>
