// The loss of a case: one scalar from the outputs and the targets of a micro-batch or of a whole batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "reference/case.h"
#include "runtime/microbatch/targets.h"

namespace plumbline::reference {

/// The names of the parameters of a loss with LossSpec::parameters: its scale and its shift, each [1].
inline constexpr std::array<const char*, 2> kLossParameters = {"loss.scale", "loss.shift"};

/// Those of `parameters`, by name, in the order of kLossParameters; empty without LossSpec::parameters.
std::vector<at::Tensor> loss_parameters(const LossSpec& spec, const std::map<std::string, at::Tensor>& parameters);

/// Computed from output 0, and for Mse and CrossEntropy from the target; with several targets, the sum of the losses of
/// output i and target i, from 0 on. With AuxiliaryLosses::Added, then, every later output that is defined is added.
/// Everything is divided by `divisor` (loss_divisor()). For cross entropy the output is [..., classes], and the target
/// holds class indices [...], ignored where they are kIgnoredTarget. `parameters`: as kLossParameters; or empty, and
/// the loss has none.
at::Tensor compute_loss(const LossSpec& spec, const std::vector<at::Tensor>& outputs, const Targets& targets,
                        double divisor = 1.0, const std::vector<at::Tensor>& parameters = {});

/// The divisor of every loss of one step, in the loss function: the number of micro-batches with Division::User, and
/// the number of elements of the whole batch's targets that count (counted_targets()) for Reduction::BatchMean.
double loss_divisor(const Case& c, const Targets& of_batch);

/// Whether there is a loss with these targets: always for Sum and Output; for the other kinds, if there is a target.
bool has_loss(const LossSpec& spec, const Targets& targets);

/// Whether the weight of a micro-batch in a mean depends on its targets, not on its rows alone.
bool counts_targets(const LossSpec& spec);

/// The divisor of a mean loss over `targets`, and so the weight of a micro-batch: for cross entropy the number of class
/// indices that are not kIgnoredTarget, or the sum of their class weights; else the number of elements.
double counted_targets(const LossSpec& spec, const Targets& targets);

/// The weight of a class with LossSpec::class_weights: 1, 2, 0.5, 4, 1, ... by ascending class.
double class_weight(int64_t index);

/// The element type of a case's parameters and floating-point inputs.
at::ScalarType scalar_type(Dtype dtype);

}  // namespace plumbline::reference
