// Everything: build a graph, compile it for a device, run it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/device.hpp>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <fuse/error.hpp>
#include <fuse/executable.hpp>
#include <fuse/executor.hpp>
#include <fuse/explore.hpp>
#include <fuse/functions.hpp>
#include <fuse/graph.hpp>
#include <fuse/memory.hpp>
#include <fuse/numerics.hpp>
#include <fuse/relation.hpp>
#include <fuse/weights.hpp>
