#include "reference/case_run.h"

#include <torch/optim/sgd.h>

#include <cstring>
#include <memory>

#include "reference/loss.h"

namespace plumbline {
namespace {

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

/// Records each name once: copies of a shared parameter are equal, the first one answers. One that is not equal, or
/// lacks what the others have, is recorded as well, under a name that no correct run has.
void record(Results& results, ResultKind kind, int step,
            const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  const auto key_of = [&](const std::string& name) { return ResultKey{step, kind, -1, -1, name}; };
  for (const auto& [name, tensor] : tensors)
    if (tensor.defined() && !results.contains(to_string(key_of(name)))) put(results, key_of(name), tensor);
  for (const auto& [name, tensor] : tensors) {
    const auto first = results.find(to_string(key_of(name)));
    if (first == results.end() || (tensor.defined() && same_bytes(first->second, tensor))) continue;
    put(results, key_of(name + (tensor.defined() ? " (a copy that differs)" : " (missing in a copy)")),
        tensor.defined() ? tensor : first->second);
  }
}

}  // namespace

void run_case(const Case& c, uint64_t seed, CaseSubject& subject, Results& results) {
  std::unique_ptr<torch::optim::SGD> optimizer;
  int batches = 0;
  for (int step = 0; step < static_cast<int>(c.steps.size()); ++step) {
    switch (c.steps[step]) {
      case StepKind::Train:
        subject.train(step, make_batch(c.model, c.dtype, c.rows, seed, batches++));
        if (keeps_details(c)) {
          std::vector<std::pair<std::string, at::Tensor>> grads;
          for (const auto& [name, parameter] : subject.parameters()) grads.emplace_back(name, parameter.grad());
          record(results, ResultKind::Grad, step, grads);
        }
        break;
      case StepKind::Eval:
        subject.evaluate(step, make_batch(c.model, c.dtype, c.rows, seed, batches++));
        break;
      case StepKind::ZeroGrad:
        subject.zero_grad();
        break;
      case StepKind::Optimizer:
        if (!optimizer) {
          std::vector<at::Tensor> trainable;
          for (const auto& [name, parameter] : subject.parameters())
            if (parameter.requires_grad()) trainable.push_back(parameter);
          optimizer = std::make_unique<torch::optim::SGD>(
              trainable, torch::optim::SGDOptions(c.optimizer.learning_rate).momentum(c.optimizer.momentum));
        }
        optimizer->step();
        break;
    }
  }
  const int last = static_cast<int>(c.steps.size()) - 1;
  record(results, ResultKind::Buffer, last, subject.buffers());
  record(results, ResultKind::Param, last, subject.parameters());
}

}  // namespace plumbline
