// fusec: the command-line face of fuse. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fuse/error.hpp>
#include <new>
#include <string>

#include "commands.hpp"

namespace {

constexpr int failed = 1;  // a check failed, or the machine did
constexpr int misused = 2;

int fail(int status, const char* what) {
  std::fflush(stdout);
  fmt::print(stderr, "error: {}\n", what);
  return status;
}

int run(int argc, char** argv) {
  CLI::App app("Compiles tensor graphs (.fuse text) into fused CUDA kernels: shows, runs and checks them.",
               "fusec");
  app.require_subcommand(1);
  app.set_version_flag("--version", "fusec " FUSE_COMPILER_VERSION);
  app.footer("Exit status: 0 done, 1 a check or the machine failed, 2 wrong use or input.");
  fuse::fusec::Action action;
  fuse::fusec::add_print(app, action);
  fuse::fusec::add_run(app, action);
  fuse::fusec::add_plan(app, action);
  fuse::fusec::add_emit(app, action);
  fuse::fusec::add_explain(app, action);
  fuse::fusec::add_stats(app, action);
  fuse::fusec::add_ops(app, action);
  fuse::fusec::add_doctor(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(misused, (std::string(error.what()) + "\n  hint: fusec --help").c_str());
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const fuse::Error& error) {
    return fail(error.kind() == fuse::ErrorKind::user ? misused : failed, error.what());
  } catch (const std::bad_alloc&) {
    return fail(failed, "out of memory");
  } catch (const std::exception& error) {
    return fail(failed, error.what());
  }
}
