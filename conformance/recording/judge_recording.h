// Judges a backend's recording of a custom model: the recording must agree with the backend's recording of the same
// model on one rank (against.h), and contain the kinds of values that the backend declared. No torch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/judge/verdict/finding.h"
#include "conformance/protocol/protocol.h"
#include "conformance/recording/recording.h"

namespace plumbline::conformance {

/// Returns the reason, in one line, why the recording in the folder `one` cannot serve as the baseline on one rank;
/// nullopt if it can.
std::optional<std::string> why_no_baseline(const std::filesystem::path& one);

/// Compares the recording in the folder `run`, of a run on `ranks` ranks, with the baseline in the folder `one`. The
/// status is Error, with a reason of one line, if a recording cannot be read, has another number of ranks or steps, or
/// the two share no value. It is Fail if a value differs, or if a parameter or a kind in `delivers` was not recorded.
/// The truth is Bounded if a value agrees only up to the order of a sum or within bounds, else SameOrder.
Finding judge_recording(const std::filesystem::path& one, const std::filesystem::path& run, int ranks,
                        const std::vector<reference::ResultKind>& delivers);

}  // namespace plumbline::conformance
