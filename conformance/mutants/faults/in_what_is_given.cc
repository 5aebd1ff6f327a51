// Mutants in how a step takes what it is given: micro-batches that the user divided, leaves whose gradients he reads,
// micro-batches that leave the pipeline early.
#include <ATen/ops/add.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/div.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "conformance/mutants/faults/batch_fault.h"
#include "conformance/mutants/faults/elements_of.h"
#include "conformance/mutants/faults/pipe_fault.h"
#include "conformance/mutants/hooked_stage.h"
#include "conformance/mutants/mutants.h"
#include "conformance/mutants/same_bytes.h"

namespace plumbline::conformance {
namespace {

using reference::ResultKey;
using reference::ResultKind;
using Parts = std::vector<models::Batch>;

/// Changes the micro-batches of a batch that the user divided.
Mutant parts(std::string name, std::string what, std::function<void(const Specs& specs, Parts& parts)> change) {
  return {std::move(name),
          std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            return batch_fault(site, [change](const Specs& specs, models::Batch& batch) {
              const Parts given = batch.parts;
              change(specs, batch.parts);
              return !std::ranges::equal(given, batch.parts, same_batch);
            });
          },
          {need::divided}};
}

template <class Change>
void each_tensor(Parts& parts, Change change) {
  for (models::Batch& part : parts) {
    for (at::Tensor& input : part.inputs)
      if (input.defined() && input.dim() == 3) input = change(input);
    part.targets =
        part.targets.map([&](const at::Tensor& target) { return target.dim() == 3 ? change(target) : target; });
  }
}

/// The dimension of a sequence's places: the first or the second, which the rows are not.
int64_t places_dim(const Specs& specs) { return !specs.empty() && specs[0].dim == 0 ? 1 : 0; }

std::pair<int64_t, int64_t> shortest_and_longest(const Parts& parts, int64_t dim) {
  std::pair<int64_t, int64_t> found{INT64_MAX, 0};
  for (const models::Batch& part : parts)
    for (const at::Tensor& input : part.inputs)
      if (input.defined() && input.dim() == 3)
        found = {std::min(found.first, input.size(dim)), std::max(found.second, input.size(dim))};
  return found;
}

void pad_to_longest(const Specs& specs, Parts& parts) {
  const int64_t dim = places_dim(specs), longest = shortest_and_longest(parts, dim).second;
  each_tensor(parts, [&](const at::Tensor& tensor) {
    std::vector<int64_t> pad(6, 0);  // from the last dimension to the first, before and after
    pad[5 - 2 * dim] = longest - tensor.size(dim);
    return at::constant_pad_nd(tensor, pad);
  });
}

void cut_to_shortest(const Specs& specs, Parts& parts) {
  const int64_t dim = places_dim(specs), shortest = shortest_and_longest(parts, dim).first;
  each_tensor(parts, [&](const at::Tensor& tensor) { return tensor.narrow(dim, 0, shortest).contiguous(); });
}

void exchange_inputs(const Specs&, Parts& parts) {
  if (parts.size() > 1) std::swap(parts[0].inputs, parts[1].inputs);
}

void take_first_common_inputs(const Specs& specs, Parts& parts) {
  for (models::Batch& part : parts)
    for (size_t i = 0; i < specs.size(); ++i)
      if (specs[i].replicate) part.inputs[i] = parts.front().inputs[i];
}

/// Changes the gradients of inputs that a rank reports.
Mutant input_gradients(
    std::string name, std::string what,
    std::function<at::Tensor(const ResultKey& key, const at::Tensor& grad, const FaultSite& site)> change,
    Need needed) {
  return {std::move(name),
          std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.results = [site, change](reference::Results& results) {
              for (auto it = results.begin(); it != results.end();) {
                const ResultKey key = reference::parse_result_key(it->first);
                if (key.kind != ResultKind::InputGrad) {
                  ++it;
                  continue;
                }
                const at::Tensor right = it->second, told = change(key, right, site);
                if (!same_bytes(right, told)) site.happens();
                it->second = told;
                it = told.defined() ? std::next(it) : results.erase(it);
              }
            };
            return fault;
          },
          {need::training, std::move(needed)}};
}

/// Changes each pipe of an evaluation or a training step, in the order in which they are made.
Mutant pipes(std::string name, std::string what,
             std::function<bool(bool training, split::Pipe& pipe, std::map<bool, split::Pipe>& first)> change,
             Need needed) {
  return {std::move(name),
          std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            return pipe_fault(
                [site, change, first = std::map<bool, split::Pipe>()](bool training, split::Pipe& made) mutable {
                  first.try_emplace(training, made);
                  if (change(training, made, first)) site.happens();
                });
          },
          {std::move(needed)}};
}

std::vector<std::vector<int64_t>> shapes_of(const split::Pipe& pipe) {
  std::vector<std::vector<int64_t>> shapes;
  for (const split::Boundary& boundary : pipe.boundaries) shapes.push_back(boundary.value.sizes);
  return shapes;
}

bool take_first_shapes(bool training, split::Pipe& pipe, std::map<bool, split::Pipe>& first) {
  if (shapes_of(pipe) == shapes_of(first.at(training))) return false;
  pipe = first.at(training);
  return true;
}

bool take_first_flags(bool training, split::Pipe& pipe, std::map<bool, split::Pipe>& first) {
  bool any = false;
  for (split::Boundary& boundary : pipe.boundaries)
    for (const split::Boundary& wanted : first.at(training).boundaries)
      if (boundary.name == wanted.name && boundary.has_gradient != wanted.has_gradient) {
        boundary.has_gradient = wanted.has_gradient;
        boundary.value.requires_grad = wanted.value.requires_grad;
        any = true;
      }
  return any;
}

/// Changes the outputs that a rank reports; `change` returns the number of the micro-batch, negative to leave one out.
Mutant outputs(std::string name, std::string what,
               std::function<int(const reference::Results& all, const ResultKey& key)> change) {
  return {std::move(name),
          std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.results = [site, change](reference::Results& results) {
              reference::Results told;
              for (const auto& [text, tensor] : results) {
                ResultKey key = reference::parse_result_key(text);
                const int microbatch = key.kind == ResultKind::Output ? change(results, key) : key.microbatch;
                if (microbatch != key.microbatch) site.happens();
                if (key.kind == ResultKind::Output && microbatch < 0) continue;
                key.microbatch = microbatch;
                told.insert_or_assign(to_string(key), tensor);
              }
              results = std::move(told);
            };
            return fault;
          },
          {need::early_exits},
          /*least_ranks=*/2};
}

/// How many outputs of the step the rank made for micro-batches before this one.
int number_on_rank(const reference::Results& all, const ResultKey& key) {
  int number = 0;
  for (const auto& [text, tensor] : all) {
    const ResultKey other = reference::parse_result_key(text);
    number +=
        other.kind == key.kind && other.step == key.step && other.name == key.name && other.microbatch < key.microbatch;
  }
  return number;
}

/// The stage hooks of a rank take the inputs of every micro-batch as the first one's: without gradients, if it had
/// none.
Fault needs_of_first(const FaultSite& site) {
  return stage_fault(site, [site](int stage, const split::StageState&) {
    StageHooks hooks;
    if (stage == 0 && !reference::requires_gradients(site.of, 0))
      hooks.inputs = [site](int, Tensors& inputs) {
        for (at::Tensor& input : inputs)
          if (input.requires_grad()) {
            input = input.detach();
            site.happens();
          }
      };
    return hooks;
  });
}

/// Gradients are numbered by the inputs that are there and handed out by all inputs.
Fault gradients_shifted_by_none(const FaultSite& site) {
  // By training step: which inputs, of all micro-batches alike, are there.
  const auto given = std::make_shared<std::map<int, std::vector<bool>>>();
  const auto names = std::make_shared<std::vector<std::string>>();
  Fault fault = step_fault({.train = [given](reference::CaseSubject& inner, int step, const models::Batch& batch) {
    std::vector<bool>& there = (*given)[step];
    for (const at::Tensor& input : batch.parts.empty() ? batch.inputs : batch.parts.front().inputs)
      there.push_back(input.defined());
    inner.train(step, batch);
  }});
  fault.options = [names](engine::EngineOptions& options) { *names = options.input_names; };
  fault.results = [site, given, names](reference::Results& results) {
    reference::Results told;
    for (const auto& [text, grad] : results) {
      ResultKey key = reference::parse_result_key(text);
      if (key.kind == ResultKind::InputGrad) {
        const std::vector<bool>& there = given->at(key.step);
        const auto input = std::ranges::find(*names, key.name) - names->begin();
        const auto number = std::count(there.begin(), there.begin() + input, true);
        if (number != input) site.happens();
        if (!there[number]) continue;  // a None has no gradient
        key.name = (*names)[number];
      }
      told.insert_or_assign(to_string(key), grad);
    }
    results = std::move(told);
  };
  return fault;
}

}  // namespace

std::vector<Mutant> mutants_in_what_is_given() {
  std::vector<Mutant> all = {
      parts("divided-inputs-exchanged", "Micro-batches 0 and 1 of a divided batch get each other's inputs.",
            exchange_inputs),
      parts("divided-common-input", "All micro-batches of a divided batch get the first one's replicated inputs.",
            take_first_common_inputs),
      parts("padded-to-longest", "Sequences of a divided batch are padded with zeros to the longest one's length.",
            pad_to_longest),
      parts("cut-to-shortest", "Sequences of a divided batch are cut to the shortest one's length.", cut_to_shortest),
      pipes("shapes-of-first-microbatch", "Every micro-batch is expected in the shapes of the first one.",
            take_first_shapes, need::divided),
      {"mean-weighted-by-elements",
       "The mean loss of a micro-batch is weighted by the elements of its target instead of its rows.",
       [](const FaultSite& site) {
         Fault fault;
         fault.options = [site](engine::EngineOptions& options) {
           options.mean_count = [site](const Targets& targets) {
             site.happens();
             return elements_of(targets);
           };
         };
         return fault;
       },
       {need::training, need::divided, need::mean_loss}},
      input_gradients(
          "whole-gradient-divided", "The gradient of a whole input is divided by the number of micro-batches.",
          [](const ResultKey&, const at::Tensor& grad, const FaultSite& site) {
            return at::div(grad, site.microbatches());
          },
          need::whole_gradients),
      input_gradients(
          "whole-gradient-of-last-rows", "A whole input keeps the gradient of its last row only.",
          [](const ResultKey&, const at::Tensor& grad, const FaultSite&) {
            at::Tensor kept = grad.clone();
            if (kept.dim() > 0) kept.narrow(0, 0, kept.size(0) - 1).zero_();
            return kept;
          },
          need::whole_gradients),
      input_gradients(
          "whole-gradient-rows-rolled", "The rows of a whole input's gradient begin one row too early.",
          [](const ResultKey&, const at::Tensor& grad, const FaultSite&) {
            return grad.dim() > 0 ? grad.roll(1, 0) : grad;
          },
          need::whole_gradients),
      input_gradients(
          "whole-gradient-lost", "A whole input is copied, and the given tensor gets no gradient.",
          [](const ResultKey&, const at::Tensor&, const FaultSite&) { return at::Tensor(); }, need::whole_gradients),
      input_gradients(
          "divided-gradients-added-up",
          "The gradient of a micro-batch's input contains that of the micro-batch before, if it has that shape.",
          [last = std::map<std::string, at::Tensor>()](const ResultKey& key, const at::Tensor& grad,
                                                       const FaultSite&) mutable {
            const at::Tensor before = std::exchange(last[key.name], grad);
            return before.defined() && before.sizes() == grad.sizes() ? at::add(before, grad) : grad;
          },
          need::divided),
      {"input-gradients-shifted-by-none",
       "Gradients of inputs are handed out as if no input were None.",
       gradients_shifted_by_none,
       {need::training, need::input_gradients}},
      {"inputs-as-first-microbatch",
       "If the inputs of micro-batch 0 require no gradients, those of no micro-batch do.",
       needs_of_first,
       {need::training, need::some_gradients}},
      pipes("gradients-as-first-microbatch",
            "A value between stages has a gradient in every micro-batch, or in none, as in the first one.",
            take_first_flags, need::some_gradients),
      outputs("outputs-numbered-by-rank", "A rank numbers the outputs that it makes from 0 on.", number_on_rank),
      outputs("early-output-lost", "The outputs of a micro-batch that leaves early are dropped with it.",
              [](const reference::Results& all, const ResultKey& key) {
                // The last stage has a loss too if there is a target; without one, a rank that also sends on is not
                // last.
                const bool sends = std::ranges::any_of(all, [](const auto& item) {
                  return reference::parse_result_key(item.first).kind == ResultKind::Forward;
                });
                return sends ? -1 : key.microbatch;
              }),
      {"early-exit-missed",
       "An evaluation runs the program of training, in which no micro-batch leaves early.",
       evaluates_as_training,
       {need::early_exits}},
  };
  return all;
}

}  // namespace plumbline::conformance
