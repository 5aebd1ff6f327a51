// Faults in the batch that a step gets.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "conformance/mutants/hooked_steps.h"
#include "conformance/mutants/same_bytes.h"

namespace plumbline::conformance {

using Specs = std::vector<microbatch::ChunkSpec>;

/// Changes a batch whose inputs are divided according to `specs`; returns whether the batch is another one afterwards.
using BatchChange = std::function<bool(const Specs& specs, models::Batch& batch)>;

/// Whether inputs and targets are equal (same_bytes). Batch::parts is not compared.
inline bool same_batch(const models::Batch& a, const models::Batch& b) {
  return std::ranges::equal(a.targets, b.targets, same_bytes) && std::ranges::equal(a.inputs, b.inputs, same_bytes);
}

/// A fault that changes the batches of all steps. Training steps and evaluations have a copy of `change` each, with the
/// state that it captures.
inline Fault batch_fault(const FaultSite& site, BatchChange change) {
  const auto specs = std::make_shared<Specs>();
  const auto changed = [site, specs, change = std::move(change)](const models::Batch& given) {
    models::Batch used = given;
    if (change(*specs, used)) site.happens();
    return used;
  };
  Fault fault =
      step_fault({.train = [changed](reference::CaseSubject& inner, int step,
                                     const models::Batch& given) { inner.train(step, changed(given)); },
                  .evaluate = [changed](reference::CaseSubject& inner, int step,
                                        const models::Batch& given) { inner.evaluate(step, changed(given)); }});
  fault.options = [specs](engine::EngineOptions& options) { *specs = options.input_chunks; };
  return fault;
}

}  // namespace plumbline::conformance
