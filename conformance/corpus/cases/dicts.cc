// Outputs in a dict.
#include "conformance/corpus/cases/axes.h"

namespace plumbline::conformance::cases {

using enum reference::StepKind;

std::vector<reference::Case> dicts() {
  return {
      {.id = "exact-dict",
       .title = "a dict with a dict and a list in it, of which the loss is made of the second key",
       .why = "the loss made of the first output, or of the first key by the alphabet",
       .model = "exact-dict",
       .loss = squares},
      {.id = "exact-dict-uneven",
       .title = "a nested dict, 10 rows over 4 micro-batches",
       .why = "values under keys joined in another order than micro-batches have",
       .model = "exact-dict",
       .rows = 10,
       .loss = squares},
      {.id = "exact-dict-one",
       .title = "a nested dict, one micro-batch",
       .why = "a dict of a single micro-batch taken for one of micro-batches",
       .model = "exact-dict",
       .microbatches = 1,
       .loss = squares},
      {.id = "exact-dict-eval",
       .title = "a nested dict in an evaluation without a target",
       .why = "a dict given up for what the loss needs of it, which an evaluation does not have",
       .model = "exact-dict",
       .loss = squares,
       .steps = {Train, {Eval, 6, false}, Train}},
      {.id = "dict",
       .title = "a nested dict, real values",
       .why = "values under two keys exchanged",
       .truth = reference::Truth::SameOrder,
       .model = "dict",
       .loss = mean_square},
      {.id = "exact-dict-loss",
       .title = "a dict with the loss that the model makes, under its second key",
       .why = "an output that is the loss looked for in the wrong place",
       .model = "exact-dict-loss",
       .loss = {reference::LossKind::Output, reference::Reduction::Sum}},
      {.id = "exact-dict-loss-recompute",
       .title = "a dict with the loss in it, from stages that are run again",
       .why = "a dict of a first run delivered without its gradient",
       .model = "exact-dict-loss",
       .loss = {reference::LossKind::Output, reference::Reduction::Sum},
       .recompute = "always"},
  };
}

}  // namespace plumbline::conformance::cases
