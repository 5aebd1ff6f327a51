// A finding about what a backend recorded of a model of its own: held against what it recorded of the same model on one
// rank (against.h), and as complete as it said that it would be. No torch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/judge/finding.h"
#include "conformance/protocol/protocol.h"
#include "conformance/recording/recording.h"

namespace plumbline::conformance {

/// Of the run on one rank: what is wrong with it, in one line; nothing when others can be held against it.
std::optional<std::string> why_no_baseline(const std::filesystem::path& one);

/// Holds the recording in `run`, of a run that was to have this many ranks, against the one in `one`. Status Error,
/// with a reason of one line, where it cannot be read, is of another number of ranks or steps, or where nothing can be
/// compared; Fail where a value differs, a parameter was not recorded, or a kind that the backend says it delivers.
/// Truth is SameOrder where all is equal bit for bit, else Bounded.
Finding judge_recording(const std::filesystem::path& one, const std::filesystem::path& run, int ranks,
                        const std::vector<reference::ResultKind>& delivers);

}  // namespace plumbline::conformance
