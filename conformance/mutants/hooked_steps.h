// A case subject decorated with hooks that replace its steps, for example to change a batch before the step or
// gradients after it.
#pragma once

#include <functional>
#include <memory>

#include "conformance/backend/fault.h"

namespace plumbline::conformance {

/// A hook replaces the call of the same name and may call `inner` itself; without a hook the call goes to `inner`.
/// Hooks call FaultSite::happens() themselves.
struct StepHooks {
  std::function<void(reference::CaseSubject& inner, int step, const models::Batch& batch)> train = {}, evaluate = {};
  std::function<void(reference::CaseSubject& inner)> zero_grad = {};
  std::function<reference::NamedTensors(const reference::CaseSubject& inner)> parameters = {};
  std::function<double(const reference::CaseSubject& inner, reference::NormKind kind)> gradient_norm = {};
  std::function<void(reference::CaseSubject& inner, reference::CaseOptimizer& optimizer)> update = {};
};

/// The decorator. `inner` must outlive it.
class SubjectAround : public reference::CaseSubject {
 public:
  SubjectAround(reference::CaseSubject& inner, StepHooks hooks) : inner_(inner), hooks_(std::move(hooks)) {}
  void train(int step, const models::Batch& batch) override {
    hooks_.train ? hooks_.train(inner_, step, batch) : inner_.train(step, batch);
  }
  void evaluate(int step, const models::Batch& batch) override {
    hooks_.evaluate ? hooks_.evaluate(inner_, step, batch) : inner_.evaluate(step, batch);
  }
  void zero_grad() override { hooks_.zero_grad ? hooks_.zero_grad(inner_) : inner_.zero_grad(); }
  void set_trainable(const std::string& pattern, bool trainable) override { inner_.set_trainable(pattern, trainable); }
  reference::NamedTensors parameters() const override {
    return hooks_.parameters ? hooks_.parameters(inner_) : inner_.parameters();
  }
  reference::NamedTensors buffers() const override { return inner_.buffers(); }
  double gradient_norm(reference::NormKind kind) const override {
    return hooks_.gradient_norm ? hooks_.gradient_norm(inner_, kind) : inner_.gradient_norm(kind);
  }
  void update(reference::CaseOptimizer& optimizer) override {
    hooks_.update ? hooks_.update(inner_, optimizer) : inner_.update(optimizer);
  }

 private:
  reference::CaseSubject& inner_;
  StepHooks hooks_;
};

/// Returns a fault that decorates the case subject of the rank.
inline Fault step_fault(StepHooks hooks) {
  Fault fault;
  fault.steps = [hooks = std::move(hooks)](reference::CaseSubject& inner) {
    return std::make_unique<SubjectAround>(inner, hooks);
  };
  return fault;
}

}  // namespace plumbline::conformance
