// What most tests include, parsed once: Catch2's one big header is most of a small test's compile time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>

#include "precompiled.hpp"
#include "support/catch.hpp"
