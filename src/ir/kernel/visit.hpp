// Walks over a kernel's statements: what passes and the verifier share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

/// The body of a loop or a condition; null for others.
std::vector<Stmt>* body_of(Stmt&);
const std::vector<Stmt>* body_of(const Stmt&);

/// Calls `f` on every statement, on one before those inside it.
void for_each_stmt(std::vector<Stmt>& body, const std::function<void(Stmt&)>& f);
void for_each_stmt(const std::vector<Stmt>& body, const std::function<void(const Stmt&)>& f);

/// Calls `f` on every index expression of a statement itself, not of its body, in which a name may be
/// replaced: ends of loops and bounds of conditions stay as they are.
void for_each_index(Stmt& stmt, const std::function<void(Index&)>& f);

/// Calls `f` on every buffer that a statement itself, not its body, reads or writes; twice if it does both.
void for_each_access(const Stmt& stmt, const std::function<void(BufferId, bool writes)>& f);

/// Puts `f` of it, once, in the place of every buffer that a statement itself, not its body, mentions.
void rename_buffers(Stmt& stmt, const std::function<BufferId(BufferId)>& f);

/// Calls `f` on every variable that a statement itself, not its body, gives a value.
void for_each_assigned(const Stmt& stmt, const std::function<void(VarId)>& f);
/// Calls `f` on every variable that a value is computed from.
void for_each_operand(Rhs& rhs, const std::function<void(VarId&)>& f);

/// The names of buffers, extents, variables, loops and bindings.
std::set<std::string> names_in(const Kernel&);

}  // namespace fuse::kernel
