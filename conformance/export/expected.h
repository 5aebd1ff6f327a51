// What is expected of a case, as a file: for those who look for their own faults before plumbline does.
#pragma once

#include <filesystem>

#include "reference/case.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// Writes expected.safetensors and expected.json, which says how to compare, into `folder`. Exact truth: every result,
/// and -0 is written as +0. Same-order: every result as this build of LibTorch has it under this schedule. Bounded:
/// KEY in float64, "KEY.bound" (the largest error allowed for each element) and "KEY.norm" (limit and floor of the
/// gate on the norm), of outputs, losses, gradients, buffers and parameters.
void write_expected(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed,
                    const std::filesystem::path& folder);

}  // namespace plumbline::conformance
