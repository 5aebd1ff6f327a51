// Positions of the cuts.
#include "conformance/corpus/cases/axes.h"

namespace plumbline::conformance::cases {

using enum reference::StepKind;

std::vector<reference::Case> splits() {
  return {
      {.id = "exact-lopsided",
       .title = "stages of one and of nine layers, and two without a parameter",
       .why = "a stage without parameters left out, or its weight half waited for",
       .model = "exact-lopsided",
       .loss = squares},
      {.id = "lopsided",
       .title = "stages of one and of nine layers, and two without a parameter, real values",
       .why = "a stage that is only a view handing on memory that is not its own",
       .truth = reference::Truth::SameOrder,
       .model = "lopsided",
       .loss = mean_square},
      {.id = "exact-lopsided-gradients",
       .title = "the gradient of the input through stages without parameters",
       .why = "an input half that is left out because there is no weight half",
       .model = "exact-lopsided",
       .rows = 10,
       .loss = squares,
       .input_gradients = true},
      {.id = "exact-lopsided-frozen",
       .title = "all layers of the largest stage frozen between two steps",
       .why = "a frozen stage and one without parameters told apart by the wrong sign",
       .model = "exact-lopsided",
       .loss = squares,
       .steps = {Train, {Freeze, "cells.[4-9].*"}, {Freeze, "cells.1[0-3].*"}, Train}},
      {.id = "exact-split-twice",
       .title = "one module is the whole of two stages",
       .why = "a stage looked up by its module, so that two become one",
       .model = "exact-split-twice",
       .loss = squares},
      {.id = "exact-split-twice-accumulate",
       .title = "one module is the whole of two stages, two steps that add up",
       .why = "a module that is split once for each step it is used in",
       .model = "exact-split-twice",
       .rows = 6,
       .loss = squares,
       .steps = {Train, Eval, {Train, 8}}},
      {.id = "split-twice",
       .title = "one module is the whole of two stages, real values",
       .why = "names of values taken from the module that made them, where two stages have the same",
       .truth = reference::Truth::SameOrder,
       .model = "split-twice",
       .loss = mean_square},
  };
}

}  // namespace plumbline::conformance::cases
