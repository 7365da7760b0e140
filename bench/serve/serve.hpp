// fuse as one of the contenders of bench/compare: requests on stdin, answers on stdout, one line of JSON
// each. bench/peers/serve.py answers the same requests for the peers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

namespace fuse::bench {

/// Answers until the end of `in`. What goes wrong with a request is its answer: {"error": "why"}.
///
///   about              name, version, device, threads
///   data case dir      writes the values of each input to DIR/NAME.bin: inputs
///   load case out      compiles, runs once, writes outputs to OUT.NAME.bin: compile_s, outputs, bytes,
///   counts check elements     that first run's y against the reference: error run runs           seconds of
///   so many runs, and the CPU time of the process gemms              seconds of the case's GEMMs alone; 0
///   without any shapes case lengths  compiles, then runs each length twice: cold_s of all, steady_s of the
///   second time copy how bytes runs  seconds of one copy, memcpy or stream; half of the bytes each way drop
///   frees the case
int serve(std::istream& in, std::ostream& out, int threads);

}  // namespace fuse::bench
