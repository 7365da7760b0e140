// GrowingGraph: a graph under construction with the value of every node so far, and ways to find or make an
// operand of a wanted type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/grow/generated_program.hpp"
#include "fuzz/grow/random.hpp"
#include "ir/builder/builder.hpp"

namespace fuse::fuzz {

class GrowingGraph {
 public:
  /// `shapes`: most extents are symbols, for which the program has so many values; 0: some are.
  GrowingGraph(std::uint64_t seed, bool special, std::int64_t most_elements, int shapes = 0);

  Random random;
  const bool special;  ///< NaN, infinities and extremes are asked for

  // Adding, without a look at the values.
  Tensor add(ir::Op, const std::vector<Tensor>& operands, ir::Attr attr = ir::NoAttr{});
  Tensor add(ir::Op, const std::vector<Tensor>& operands, ir::Attr attr, DType, std::vector<Dim> dims);
  Tensor input(DType, std::vector<Dim> dims, bool parameter = false);
  Tensor constant(DType, std::vector<Dim> dims);
  Tensor broadcast(const Tensor& x, std::vector<Dim> dims, std::vector<std::int64_t> positions);

  /// A new symbol of that value, in a range that tells nothing of it.
  Dim declare(std::int64_t value);
  /// A new symbol that is 1 or `whole`; none where programs have one shape, or when there are three.
  std::optional<Dim> one_or(const Dim& whole);
  /// The value becomes an output in the memory of the input; neither may be given twice.
  void donate(const Tensor& value, const Tensor& donor);

  // Finding.
  /// An earlier value of that dtype, recent ones more often; a new input where there is none that fits.
  Tensor operand(DType, std::int64_t least_rank = 0);
  std::optional<Tensor> earlier(const std::function<bool(const ir::Type&)>& fits);
  /// A value of exactly this type, by every means.
  Tensor of_type(DType, const std::vector<Dim>& dims);
  /// A value in a comfortable range that keeps something of x: for ops that were refused for their result.
  Tensor tame(const Tensor& x);

  // Shapes.
  Dim extent();
  std::vector<Dim> shape(std::int64_t least_rank = 0);
  std::int64_t value_of(const Dim& dim) const;
  std::int64_t elements(const std::vector<Dim>& dims) const;
  bool fits(const std::vector<Dim>& dims) const { return elements(dims) <= most_elements_; }
  const std::vector<Dim>& symbols() const { return symbols_; }

  // Trying: everything added since `mark` stays only if keep() says so.
  std::size_t mark() const { return builder_->graph.nodes.size(); }
  void roll_back(std::size_t mark);
  /// Evaluates the new nodes. False where the last one's value is not one to go on with.
  bool evaluate();

  const ir::Graph& graph() const { return builder_->graph; }
  detail::Builder& builder() { return *builder_; }
  const Enclosure& value(ir::NodeId id) const { return values_[id]; }
  /// Values that are outputs in the memory of an input, with that input.
  const std::map<ir::NodeId, ir::NodeId>& donations() const { return donations_; }
  /// The program with these outputs, some of them in the memory of inputs; inputs that nothing uses stay now
  /// and then.
  Program finish(const std::vector<ir::NodeId>& outputs);

 private:
  void add_binding(Program& program);
  void donate_some(ir::Graph& graph);
  InputStyle style(DType);
  std::optional<Tensor> broadcast_of_earlier(DType, const std::vector<Dim>& dims);

  std::shared_ptr<detail::Builder> builder_ = std::make_shared<detail::Builder>();
  std::int64_t most_elements_;
  int shapes_;
  std::uint64_t inputs_seed_;
  std::vector<Dim> symbols_;
  DimValues dims_;
  std::map<std::string, InputStyle> styles_;
  std::vector<Enclosure> values_;
  std::map<ir::NodeId, ir::NodeId> donations_;
  std::size_t names_ = 0;
};

}  // namespace fuse::fuzz
