// What most files include, parsed once, which halves the time of a build. A file still includes what it uses:
// ./dev matrix builds the preset `shared`, which goes without this.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/graph/ir_graph.hpp"
