// What a test tells the fake cuBLASLt, and what it asks of it. Exported by libfake_cublaslt.so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

extern "C" {
/// Forgets failures, calls and settings; live objects stay.
void fake_cublaslt_reset();
/// The nth call (from 1) of `function` ("" counts all) returns `status`, once.
void fake_cublaslt_fail_at(const char* function, int nth, int status);
/// Scratch that the next algorithms ask for.
void fake_cublaslt_set_workspace(long long bytes);
/// Products are counted and not computed, and nothing is recorded. For measuring the caller.
void fake_cublaslt_only_count(int on);
/// Products since it was last asked, while only counting.
long long fake_cublaslt_counted();
int fake_cublaslt_call_count();
/// "cublasLtMatmul" and what it was given; "" out of range. Valid until the next reset.
const char* fake_cublaslt_call(int index);
/// Handles, descriptors, layouts and preferences that were not given back.
int fake_cublaslt_live();
/// Calls that a real one would refuse or crash on.
int fake_cublaslt_misuse();
}
