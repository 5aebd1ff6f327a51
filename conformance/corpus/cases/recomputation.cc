// Stages recomputed in their backward.
#include "conformance/corpus/cases/axes.h"

namespace plumbline::conformance::cases {

using enum reference::StepKind;

std::vector<reference::Case> recomputation() {
  return {
      {.id = "exact-recompute",
       .title = "every stage is run again",
       .why = "a stage run again on inputs that are gone, or on those of another micro-batch",
       .model = "exact-mlp",
       .loss = squares,
       .recompute = "always"},
      {.id = "exact-recompute-except-last",
       .title = "every stage is run again, but for the last micro-batch",
       .why = "the last micro-batch taken for the last in the order of the schedule",
       .model = "exact-mlp",
       .loss = squares,
       .recompute = "except-last"},
      {.id = "exact-recompute-skip",
       .title = "stages with skips are run again",
       .why = "a skip that was released before its stage was run again",
       .model = "exact-skip",
       .loss = squares,
       .recompute = "always"},
      {.id = "exact-recompute-shared",
       .title = "a module called twice in a stage that is run again",
       .why = "gradients of both runs added",
       .model = "exact-shared-within",
       .loss = squares,
       .recompute = "always"},
      {.id = "exact-recompute-frozen",
       .title = "frozen stages are run again",
       .why = "a stage run again for nothing, or not although its input wants a gradient",
       .model = "exact-frozen",
       .loss = squares,
       .recompute = "always"},
      {.id = "exact-recompute-in-place",
       .title = "stages that begin in place are run again",
       .why = "an input changed twice",
       .model = "exact-begins-in-place",
       .loss = squares,
       .recompute = "always"},
      {.id = "exact-recompute-buffers",
       .title = "running sums in stages that are run again",
       .why = "what a second run counts as well",
       .model = "exact-convolution",
       .loss = squares,
       .recompute = "always"},
      {.id = "exact-recompute-accumulate",
       .title = "stages run again over two steps",
       .why = "an evaluation that keeps what it does not need",
       .model = "exact-mlp",
       .loss = squares,
       .steps = {Train, Eval, Train},
       .recompute = "except-last"},
      {.id = "recompute-transformer",
       .title = "attention in stages that are run again",
       .why = "other bits in the second run",
       .truth = reference::Truth::SameOrder,
       .model = "transformer-lm",
       .loss = cross_entropy,
       .recompute = "always"},
  };
}

}  // namespace plumbline::conformance::cases
