// The axes of the corpus: each function returns the cases of one axis and has a source file of the same name.
// corpus() concatenates the axes in the order below. An id never changes its meaning.
#pragma once

#include <vector>

#include "reference/case.h"

namespace plumbline::conformance::cases {

inline constexpr reference::LossSpec sum{reference::LossKind::Sum, reference::Reduction::Sum};
inline constexpr reference::LossSpec squares{reference::LossKind::Mse, reference::Reduction::Sum};
inline constexpr reference::LossSpec mean_square{reference::LossKind::Mse, reference::Reduction::Mean};
inline constexpr reference::LossSpec cross_entropy{reference::LossKind::CrossEntropy, reference::Reduction::Mean};
inline constexpr reference::LossSpec own_loss{reference::LossKind::Output, reference::Reduction::Mean};

/// 60 steps: the sequence zero_grad, train, optimizer twenty times.
std::vector<reference::Step> training_run();

std::vector<reference::Case> exact_basics();   // the plain chain and its first variations
std::vector<reference::Case> real_basics();    // each family of models once, on real data; training runs
std::vector<reference::Case> borders();        // values at stage boundaries
std::vector<reference::Case> presence();       // values that are present in some steps only
std::vector<reference::Case> dicts();          // outputs in a dict
std::vector<reference::Case> splits();         // positions of the cuts
std::vector<reference::Case> sharing();        // modules and parameters used several times
std::vector<reference::Case> gradients();      // missing gradients, zero gradients, gradients of inputs; user hooks
std::vector<reference::Case> families();       // recurrent, encoder-decoder, attention, experts, convolutions, U-Net
std::vector<reference::Case> microbatches();   // number and sizes; other chunk dimensions, replicated inputs, keywords
std::vector<reference::Case> losses();         // mean reductions, ignored targets, losses inside the model
std::vector<reference::Case> dtypes();         // fp64, fp16, bf16, several dtypes in one model
std::vector<reference::Case> randomness();     // dropout, other random numbers, batch statistics
std::vector<reference::Case> steps();          // accumulation, evaluation between train steps, freezing, optimizers
std::vector<reference::Case> recomputation();  // stages recomputed in their backward
std::vector<reference::Case> orders();         // cases with a built-in schedule

}  // namespace plumbline::conformance::cases
