// The optimizer of a case: LibTorch's SGD or AdamW over the parameters of a subject, with its state under canonical
// names.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>

#include "reference/case.h"
#include "reference/named_tensors.h"

namespace torch::optim {
class Optimizer;
}

namespace plumbline::reference {

/// By "PARAMETER/ENTRY", with the entries of PyTorch's optimizers: `momentum_buffer` (SGD with momentum); `exp_avg`,
/// `exp_avg_sq` and `step`, the number of updates (AdamW). `step` is a scalar of I64, the others have the shape and
/// type of their parameter. A parameter that was never updated has no entries.
using OptimizerState = std::map<std::string, at::Tensor>;

class CaseOptimizer {
 public:
  /// Covers every parameter, with `begin` as its state: the optimizer skips a parameter without a gradient, so it does
  /// not matter which are frozen now. Several copies under one name have the same state at the beginning.
  CaseOptimizer(const OptimizerSpec& spec, NamedTensors parameters, const OptimizerState& begin);
  ~CaseOptimizer();

  void step();
  /// One item for each copy and entry, in the order of the parameters; the tensors themselves.
  NamedTensors state() const;

 private:
  NamedTensors parameters_;
  bool is_sgd_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace plumbline::reference
