// Which mutant runs, and which ones a test reaches: part of the tree that plant.py writes, and of no other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuse::mutants {

/// The number in FUSE_MUTANT; 0: the code as it was.
extern const int active;
/// A byte per mutant, set once it was reached; null where nobody asks (FUSE_MUTANT_TRACE).
extern unsigned char* const reached;

inline bool is(int number) {
  if (reached != nullptr) reached[number] = 1;
  return number == active;
}

}  // namespace fuse::mutants
