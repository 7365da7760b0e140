// A user's kernel on the reference device: the host function that came with it.
// SPDX-License-Identifier: Apache-2.0
#include "eval/eval_step.hpp"

namespace fuse::runtime::reference {

ReferenceTensor evaluate_custom(const Step& step) {
  const auto& kernel = ir::attr<ir::CustomAttr>(step.node);
  if (!kernel.reference) {
    step.fail(ErrorCode::unsupported, "the kernel '" + kernel.name + "' has no host function",
              "set CustomKernel::reference; a graph read from text has none");
  }
  // The function sees values of the dtypes, so an exact evaluation rounds here.
  std::vector<HostTensor> operands;
  for (const ReferenceTensor* operand : step.operands) operands.push_back(operand->to_host());
  HostTensor result = HostTensor::make(step.dtype(), step.shape);
  std::vector<HostView> views;
  for (HostTensor& operand : operands) views.push_back({operand.dtype, operand.shape, operand.data.data()});
  (*kernel.reference)(views, {result.dtype, result.shape, result.data.data()});
  return ReferenceTensor::from_host(result, step.floats);
}

}  // namespace fuse::runtime::reference
