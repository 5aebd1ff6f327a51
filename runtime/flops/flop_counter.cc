#include "runtime/flops/flop_counter.h"

#include "runtime/flops/flop_constant.h"

namespace plumbline::flops {

void FlopCounter::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const FlopFormula* formula = find_flop_formula(op.operator_name().name);
  if (!formula) return op.callBoxed(stack);
  CallSizes sizes;
  const size_t arguments = op.schema().arguments().size();
  for (size_t a = 0; a < arguments; ++a) {
    const c10::IValue& value = torch::jit::peek(*stack, a, arguments);
    std::vector<Sizes>& tensors = sizes.tensors.emplace_back();
    sizes.constants.push_back(flop_constant(value));
    capture::for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor.sizes().vec()); });
  }
  op.callBoxed(stack);
  const c10::IValue& result = torch::jit::peek(*stack, 0, op.schema().returns().size());
  if (result.isTensor() && result.toTensor().defined()) sizes.result = static_cast<double>(result.toTensor().numel());
  flops_ += formula->flops(sizes);
}

}  // namespace plumbline::flops
