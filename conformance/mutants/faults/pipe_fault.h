// Faults in the pipes that an engine gets.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "conformance/backend/fault.h"

namespace plumbline::conformance {

/// A fault that changes each pipe of an evaluation or a training step, in the order in which they are made. Every
/// engine has a copy of `change`, with the state that it captures. It calls FaultSite::happens() itself.
inline Fault pipe_fault(std::function<void(bool training, split::Pipe& pipe)> change) {
  Fault fault;
  fault.pipes = [change = std::move(change)](engine::PipeSource inner) -> engine::PipeSource {
    return [change, inner = std::move(inner)](bool training, const std::vector<at::Tensor>& inputs) {
      split::Pipe made = inner(training, inputs);
      change(training, made);
      return made;
    };
  };
  return fault;
}

/// A fault that gives evaluations the pipes of training.
inline Fault evaluates_as_training(const FaultSite& site) {
  Fault fault;
  fault.pipes = [site](engine::PipeSource inner) -> engine::PipeSource {
    return [site, inner = std::move(inner)](bool training, const std::vector<at::Tensor>& inputs) {
      if (!training) site.happens();
      return inner(true, inputs);
    };
  };
  return fault;
}

}  // namespace plumbline::conformance
