// Mutants in the division of inputs and targets into micro-batches.
#include <ATen/ops/cat.h>

#include <memory>
#include <utility>

#include "conformance/mutants/faults/batch_fault.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {
namespace {

/// Changes the inputs and targets of each batch. `change` is copied for each rank, with the state that it captures.
Mutant batch(std::string name, std::string what,
             std::function<void(const FaultSite& site, const Specs& specs, models::Batch& batch)> change,
             std::vector<Need> needs = {}) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            return batch_fault(site, [site, change](const Specs& specs, models::Batch& batch) {
              const models::Batch given = batch;
              change(site, specs, batch);
              return !same_batch(given, batch);
            });
          },
          std::move(needs)};
}

Mutant chunks(std::string name, std::string what, std::function<bool(microbatch::ChunkSpec&)> change,
              std::vector<Need> needs = {need::several_microbatches}) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.options = [site, change](engine::EngineOptions& options) {
              for (microbatch::ChunkSpec& spec : options.input_chunks)
                if (change(spec)) site.happens();
            };
            return fault;
          },
          std::move(needs)};
}

template <class Rows>
void each_input(const Specs& specs, models::Batch& batch, Rows change) {
  for (size_t i = 0; i < batch.inputs.size(); ++i)
    if (!specs[i].replicate && batch.inputs[i].defined()) batch.inputs[i] = change(batch.inputs[i], specs[i].dim);
}

/// Along their first dimension.
template <class Rows>
void each_target(models::Batch& batch, Rows change) {
  batch.targets = batch.targets.map([&](const at::Tensor& target) { return change(target, 0); });
}

at::Tensor rolled(const at::Tensor& tensor, int dim) { return tensor.defined() ? tensor.roll(1, dim) : tensor; }

at::Tensor first_rows(const at::Tensor& tensor, int dim, int64_t rows) {
  return tensor.defined() ? tensor.narrow(dim, 0, rows).contiguous() : tensor;
}

/// The last row repeats the row before it.
at::Tensor last_row_lost(const at::Tensor& tensor, int dim) {
  if (!tensor.defined() || tensor.size(dim) < 2) return tensor;
  at::Tensor out = tensor.clone();
  out.select(dim, -1).copy_(tensor.select(dim, tensor.size(dim) - 2));
  return out;
}

}  // namespace

std::vector<Mutant> mutants_in_the_batch() {
  return {
      batch("inputs-off-by-a-row", "Micro-batches of the inputs begin one row too early; those of the target do not.",
            [](const FaultSite&, const Specs& specs, models::Batch& batch) { each_input(specs, batch, rolled); }),
      batch("target-off-by-a-row", "Micro-batches of the target begin one row too early.",
            [](const FaultSite&, const Specs&, models::Batch& batch) { each_target(batch, rolled); }),
      batch(
          "last-row-repeated", "The last row of the inputs repeats the row before it.",
          [](const FaultSite&, const Specs& specs, models::Batch& batch) { each_input(specs, batch, last_row_lost); }),
      batch("rows-reversed", "Micro-batches are taken from the end of the batch.",
            [](const FaultSite&, const Specs& specs, models::Batch& batch) {
              each_input(specs, batch, [](const at::Tensor& t, int dim) { return t.flip(dim); });
              each_target(batch, [](const at::Tensor& t, int dim) { return t.flip(dim); });
            }),
      batch("remainder-dropped", "Rows beyond a multiple of the number of micro-batches are dropped.",
            [](const FaultSite& site, const Specs& specs, models::Batch& batch) {
              const auto even = [&](const at::Tensor& t, int dim) {
                return first_rows(t, dim, t.size(dim) / site.microbatches() * site.microbatches());
              };
              each_input(specs, batch, even);
              each_target(batch, even);
            },
            {need::uneven_rows}),
      batch("remainder-padded", "A batch whose rows do not divide evenly is padded with its last row.",
            [](const FaultSite& site, const Specs& specs, models::Batch& batch) {
              const auto full = [&](at::Tensor t, int dim) {
                while (t.size(dim) % site.microbatches() != 0) t = at::cat({t, t.narrow(dim, t.size(dim) - 1, 1)}, dim);
                return t;
              };
              each_input(specs, batch, full);
              each_target(batch, full);
            },
            {need::uneven_rows}),
      batch("first-batch-again", "Every step gets the first step's batch.",
            [first = std::shared_ptr<models::Batch>()](const FaultSite&, const Specs&, models::Batch& batch) mutable {
              if (!first) first = std::make_shared<models::Batch>(batch);
              batch = *first;
            },
            {need::several_trainings}),
      batch("inputs-in-bf16", "Floating inputs are rounded to bf16.",
            [](const FaultSite&, const Specs&, models::Batch& batch) {
              for (at::Tensor& input : batch.inputs)
                if (input.defined() && input.is_floating_point())
                  input = input.to(at::kBFloat16).to(input.scalar_type());
            },
            {need::float32}),
      chunks("replicated-input-divided", "A replicated input is divided.",
             [](microbatch::ChunkSpec& spec) { return std::exchange(spec.replicate, false); }),
      chunks("input-divided-along-rows", "An input is divided along dimension 0 instead of its batch dimension.",
             [](microbatch::ChunkSpec& spec) { return !spec.replicate && std::exchange(spec.dim, 0) != 0; }),
      chunks("input-not-divided", "Every micro-batch gets the inputs of the whole batch.",
             [](microbatch::ChunkSpec& spec) { return !std::exchange(spec.replicate, true); }),
  };
}

}  // namespace plumbline::conformance
