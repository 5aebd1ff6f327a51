// A stage runner decorated with hooks that change its inputs, outputs and gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/backend/fault.h"
#include "runtime/engine/stage/forwarding_runner.h"

namespace plumbline::conformance {

using Tensors = std::vector<at::Tensor>;

/// Hooks of one stage; an empty hook changes nothing. A hook replaces elements of its list; a hook that changes a
/// tensor in place calls FaultSite::happens() itself. Autograd records the operations of `inputs` and `outputs`; the
/// other hooks run without autograd.
struct StageHooks {
  std::function<void(int microbatch, Tensors& inputs)> inputs = {};      ///< before the forward
  std::function<void(int microbatch, Tensors& outputs)> outputs = {};    ///< after the forward
  std::function<void(int microbatch, Tensors& grads)> root_grads = {};   ///< of the outputs, before the backward
  std::function<void(int microbatch, Tensors& grads)> input_grads = {};  ///< of the inputs, after the backward
  /// Returns a parameter's gradient after the backward, or weight half, of this micro-batch. The correct result is
  /// reference::sum_of(before, part): `before` is the sum so far, `part` the gradient of this micro-batch; both may be
  /// undefined.
  std::function<at::Tensor(int microbatch, const std::string& name, const at::Tensor& before, const at::Tensor& part)>
      accumulate = {};
  /// Returns the micro-batch whose weight half is executed in place of that of `microbatch`; negative: none.
  std::function<int(int microbatch)> weight_half = {};
};

/// Decorates `inner` with the hooks. The decorator calls site.happens() whenever the result of a hook differs bitwise
/// from the correct tensors or micro-batch. `state`, and the case, schedule and counter of `site`, must outlive the
/// decorator.
std::unique_ptr<engine::StageRunner> with_hooks(std::unique_ptr<engine::StageRunner> inner, const FaultSite& site,
                                                const split::StageState& state, StageHooks hooks);

/// Returns a fault that decorates every stage of the rank. `hooks` returns the hooks of one stage.
Fault stage_fault(const FaultSite& site, std::function<StageHooks(int stage, const split::StageState& state)> hooks);

}  // namespace plumbline::conformance
