// The expected results of a case as files, with which a developer can debug a backend without plumbline.
#pragma once

#include <filesystem>

#include "reference/case.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// The format that expected.json declares.
inline constexpr const char* kExpectedFormat = "plumbline-expected/1";

/// Computes the expected results and writes them to expected.safetensors in `folder`, which must exist; expected.json
/// states how to compare them. Tensors are named by result key. Exact truth: every result, with -0 written as +0.
/// Same-order truth: every result, as this build of LibTorch computes it in the schedule's order of accumulation.
/// Bounded truth: outputs, losses, input gradients, gradients, buffers and parameters. Each floating-point KEY is in
/// float64 and has two companions: "KEY.bound", the largest error allowed for each element, and "KEY.norm", the limit
/// and the floor of its norm gate (NormGate). Throws InputError if a file cannot be written.
void write_expected(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed,
                    const std::filesystem::path& folder);

}  // namespace plumbline::conformance
