// The axes of the corpus, a file for each; together they are corpus(). Ids never change their meaning.
#pragma once

#include <vector>

#include "reference/case.h"

namespace plumbline::cases {

inline constexpr LossSpec sum{LossKind::Sum, Reduction::Sum};
inline constexpr LossSpec squares{LossKind::Mse, Reduction::Sum};
inline constexpr LossSpec mean_square{LossKind::Mse, Reduction::Mean};
inline constexpr LossSpec cross_entropy{LossKind::CrossEntropy, Reduction::Mean};
inline constexpr LossSpec own_loss{LossKind::Output, Reduction::Mean};

/// Twenty times zero_grad, train, optimizer.
std::vector<Step> training_run();

std::vector<Case> exact_basics();   // the plain chain and its first variations
std::vector<Case> real_basics();    // each family once, with real numbers; runs of training
std::vector<Case> borders();        // what lies at borders of stages
std::vector<Case> presence();       // what is there in one step and None in another
std::vector<Case> dicts();          // outputs in a dict
std::vector<Case> splits();         // where the split falls
std::vector<Case> sharing();        // modules and parameters used several times
std::vector<Case> gradients();      // no gradients, zero ones, those of inputs; users' hooks
std::vector<Case> families();       // recurrent, encoder and decoder, attention, experts, convolutions, U-Net
std::vector<Case> microbatches();   // one, few, uneven, many; other dimensions, replicated inputs, keywords
std::vector<Case> losses();         // means, ignored targets, losses made inside
std::vector<Case> dtypes();         // fp64, fp16, bf16, several in one model
std::vector<Case> randomness();     // dropout, other random numbers, statistics of batches
std::vector<Case> steps();          // accumulation, evaluation between, freezing, optimizers
std::vector<Case> recomputation();  // stages run again in their backward
std::vector<Case> orders();         // schedules of a case's own

}  // namespace plumbline::cases
