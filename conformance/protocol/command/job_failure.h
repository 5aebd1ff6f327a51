// Why a backend's program failed.
#pragma once

#include <string>

#include "conformance/protocol/backend.h"

namespace plumbline::conformance {

/// In one line, that the temporary folder has less room than ranks and their launcher need: Open MPI's then wait for
/// ever, without a word. Empty if there is enough.
std::string lack_of_room();
/// Likewise, that a process may open fewer files.
std::string lack_of_open_files();
/// Both, for JobResult::lack.
std::string lack_of_ranks();

/// The reason of a failure in one line: what a rank printed behind "plumbline: ", else the first exception that it
/// names, else its last words; and how it ended.
std::string reason_of(const JobResult& result);

/// "; LINE on standard output is no event, ..." for the reason of a failure to which JobResult::hidden_event may have
/// led; empty without one.
std::string clause_on_hidden_event(const JobResult& result);

}  // namespace plumbline::conformance
