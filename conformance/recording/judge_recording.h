// Judges a backend's recording of its custom model: it must agree with the backend's recording of the same model on one
// rank (against.h), and contain the kinds that the backend declared. No torch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/judge/finding.h"
#include "conformance/protocol/protocol.h"
#include "conformance/recording/recording.h"

namespace plumbline::conformance {

/// Why the recording of the run on one rank cannot serve as the baseline, in one line; nothing if it can.
std::optional<std::string> why_no_baseline(const std::filesystem::path& one);

/// Compares the recording in `run`, of a run on `ranks` ranks, with the one in `one`. Status Error, with a reason of
/// one
/// line, if it cannot be read, has another number of ranks or steps, or shares no value with `one`. Fail if a value
/// differs, or if a parameter or a kind in `delivers` was not recorded. Truth is SameOrder if all values are equal bit
/// for bit, else Bounded.
Finding judge_recording(const std::filesystem::path& one, const std::filesystem::path& run, int ranks,
                        const std::vector<reference::ResultKind>& delivers);

}  // namespace plumbline::conformance
