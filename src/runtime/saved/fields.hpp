// The fields that are kept for each type, in order: to write it, and to read it again. A change here is a
// change of the format: count plan_format up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/program.hpp"
#include "runtime/saved/archive.hpp"
#include "runtime/saved/plan_file.hpp"

namespace fuse::runtime {

/// The format of what fields.hpp lists.
inline constexpr std::uint32_t plan_format = 10;

// The last value of each enumeration: what is above is damage. The reader is asked for, so that it is found.
constexpr DType last_of(const ArchiveReader&, DType) { return DType::boolean; }
constexpr Slot::Kind last_of(const ArchiveReader&, Slot::Kind) { return Slot::Kind::output; }
constexpr DimRelation::Kind last_of(const ArchiveReader&, DimRelation::Kind) {
  return DimRelation::Kind::one_or;
}
constexpr schedule::PlanValue::Kind last_of(const ArchiveReader&, schedule::PlanValue::Kind) {
  return schedule::PlanValue::Kind::temporary;
}
constexpr schedule::EpilogueKind last_of(const ArchiveReader&, schedule::EpilogueKind) {
  return schedule::EpilogueKind::scale;
}
constexpr ExecutionMode last_of(const ArchiveReader&, ExecutionMode) { return ExecutionMode::automatic; }
constexpr codegen::KernelParam::Kind last_of(const ArchiveReader&, codegen::KernelParam::Kind) {
  return codegen::KernelParam::Kind::extent;
}

template <class A>
void fields(A& a, As<A, SourceLocation>& v) {
  a(v.file, v.line);
}
template <class A>
void fields(A& a, As<A, DimRelation>& v) {
  a(v.kind, v.left, v.right);
}
template <class A>
void fields(A& a, As<A, ir::Symbol>& v) {
  a(v.name, v.range.min, v.range.max, v.range.hint, v.factor);
}
template <class A>
void fields(A& a, As<A, ir::Guard>& v) {
  a(v.relation, v.location, v.needed_by);
}

template <class A>
void fields(A& a, As<A, Slot>& v) {
  a(v.kind, v.name, v.dtype, v.dims, v.donor);
}
template <class A>
void fields(A& a, As<A, Signature::Need>& v) {
  a(v.symbol, v.value);
}
template <class A>
void fields(A& a, As<A, Signature::Slice>& v) {
  a(v.start, v.limit, v.extent);
}
template <class A>
void fields(A& a, As<A, FilledExtent>& v) {
  a(v.gathered, v.axis, v.extent);
}
template <class A>
void fields(A& a, As<A, Signature::Op>& v) {
  a(v.op, v.shapes, v.location, v.type, v.dtype, v.dims, v.other_dims, v.slices, v.filled);
}
template <class A>
void fields(A& a, As<A, Signature>& v) {
  a(v.name);
  a.symbols(v.symbols);
  a(v.slots, v.guards, v.needs, v.ops, v.values);
}

template <class A>
void fields(A& a, As<A, schedule::Inside>& v) {
  a(v.whole, v.offset_bytes, v.is_rest);
}
template <class A>
void fields(A& a, As<A, schedule::PlanValue>& v) {
  a(v.kind, v.name, v.dtype, v.dims, v.donor, v.inside);
}
template <class A>
void fields(A& a, As<A, schedule::KernelStep>& v) {
  a(v.kernel, v.buffers, v.extents, v.grid, v.touched, v.counter, v.fallback);
}
template <class A>
void fields(A& a, As<A, schedule::GemmLayout>& v) {
  a(v.row, v.inner, v.inner_stride, v.outer, v.outer_stride);
}
template <class A>
void fields(A& a, As<A, schedule::GemmAlgorithm>& v) {
  a(v.rank, v.line);
}
template <class A>
void fields(A& a, As<A, schedule::GemmStep>& v) {
  a(v.a, v.b, v.c, v.batch, v.m, v.n, v.k, v.transpose_a, v.transpose_b, v.operand, v.result, v.epilogue,
    v.extra, v.scale, v.layout, v.layout_a, v.layout_b, v.algorithm, v.algorithms);
}
template <class A>
void fields(A& a, As<A, schedule::CopyStep>& v) {
  a(v.from, v.to);
}
template <class A>
void fields(A& a, As<A, schedule::MemsetStep>& v) {
  a(v.to, v.byte);
}
template <class A>
void fields(A& a, As<A, schedule::VersionTable::Branch>& v) {
  a(v.ends, v.to);
}
template <class A>
void fields(A& a, As<A, schedule::VersionTable::Test>& v) {
  a(v.relation, v.yes, v.no);
}
template <class A>
void fields(A& a, As<A, schedule::VersionTable>& v) {
  a(v.tests, v.versions);
}
template <class A>
void fields(A& a, As<A, schedule::GemmAlgorithms>& v) {
  a(v.table, v.recorded, v.library);
}
template <class A>
void fields(A& a, As<A, schedule::StepVersion>& v) {
  a(v.table, v.version);
}
// The attribute without its nodes: they are of a graph that is not kept.
template <class A>
void fields(A& a, As<A, schedule::Step>& v) {
  a(v.work, v.reads, v.writes, v.cooperative, v.continues, v.origin, v.name, v.version);
}
template <class A>
void fields(A& a, As<A, schedule::Plan>& v) {
  a(v.values, v.setup, v.steps, v.tables, v.algorithms, v.most_bytes);
}
template <class A>
void fields(A& a, As<A, schedule::StreamChoices>& v) {
  a(v.max_streams, v.order, v.stream, v.order_cooperative);
}
template <class A>
void fields(A& a, As<A, schedule::RunDecision>& v) {
  a(v.mode, v.order, v.streams, v.line);
}

template <class A>
void fields(A& a, As<A, codegen::KernelParam>& v) {
  a(v.kind, v.name, v.dtype, v.written);
}
template <class A>
void fields(A& a, As<A, codegen::OpLine>& v) {
  a(v.line, v.op, v.scope, v.location, v.barrier);
}
template <class A>
void fields(A& a, As<A, codegen::KernelInfo>& v) {
  a(v.name, v.params, v.block_threads, v.communicates, v.cooperative, v.blocks_per_sm, v.min_blocks_per_sm,
    v.cluster, v.shared_bytes, v.lines, v.first_line, v.last_line);
}
template <class A>
void fields(A& a, As<A, StepOrigin>& v) {
  a(v.ops, v.lines, v.group, v.op, v.type, v.location);
}
template <class A>
void fields(A& a, As<A, Program>& v) {
  a(v.signature, v.plan, v.streams, v.run, v.source_name, v.kernels, v.origins, v.groups, v.setup, v.builds);
}
template <class A>
void fields(A& a, As<A, Binary::Image>& v) {
  a(v.bytes, v.kernels, v.first);
}

template <class A>
void fields(A& a, As<A, Fit>& v) {
  a(v.field, v.value);
}
template <class A>
void fields(A& a, As<A, Provenance>& v) {
  a(v.explanation, v.source, v.graph, v.options);
}
template <class A>
void fields(A& a, As<A, SavedBuild>& v) {
  a(v.program, v.maker, v.images);
}
template <class A>
void fields(A& a, As<A, SavedTarget>& v) {
  a(v.fits, v.builds, v.provenance);
}

}  // namespace fuse::runtime
