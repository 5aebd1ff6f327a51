// The expected results of a case as a file, with which a backend's developer can debug without plumbline.
#pragma once

#include <filesystem>

#include "reference/case.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// Writes expected.safetensors, and expected.json with the kind of comparison, into `folder`. Exact truth: every
/// result,
/// with -0 written as +0. Same-order: every result that this build of LibTorch computes under this schedule. Bounded:
/// KEY in float64, "KEY.bound" (the largest error allowed for each element) and "KEY.norm" (limit and floor of the gate
/// on the norm), for outputs, losses, gradients, buffers and parameters.
void write_expected(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed,
                    const std::filesystem::path& folder);

}  // namespace plumbline::conformance
