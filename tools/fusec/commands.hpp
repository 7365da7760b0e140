// The subcommands: each adds itself to the program and, when it is chosen, sets what is to be done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace fuse::fusec {

/// Returns the exit status: 0, or 1 where a check failed. Throws fuse::Error.
using Action = std::function<int()>;

void add_print(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_emit(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_stats(CLI::App& app, Action& action);
void add_ops(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

}  // namespace fuse::fusec
