// The norm of a model's gradients, as the oracles compute it.
#pragma once

#include "reference/case.h"
#include "reference/named_tensors.h"

namespace plumbline::reference {

/// The norm over the gradients of `parameters`, those of one name counted once. In float64: Two is the square root of
/// the sum over the parameters, by ascending name, of the sum of the squares of their elements; Infinity is the largest
/// absolute value. Infinite or NaN if a gradient, converted to `dtype`, is: a run in float64 finds the overflows of
/// the case's type.
double gradient_norm(const NamedTensors& parameters, NormKind kind, Dtype dtype);

}  // namespace plumbline::reference
