// The light part: building a graph. What compiles and runs it is in fuse.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/custom.hpp>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <fuse/error.hpp>
#include <fuse/graph.hpp>
#include <fuse/relation.hpp>
