// Why a backend's program failed.
#pragma once

#include <string>

#include "conformance/protocol/backend.h"

namespace plumbline::conformance {

/// Says in one line that the temporary folder has less room than ranks and their launcher need; empty if it has enough.
/// Without room, ranks of Open MPI wait for ever, and print nothing.
std::string lack_of_room();
/// Says in one line that a process may open fewer files than ranks need; empty if it may open enough.
std::string lack_of_open_files();
/// Both in one line, for JobResult::lack.
std::string lack_of_ranks();

/// The reason of a failure in one line: what a rank printed behind "plumbline: ", else the first exception that it
/// names, else its last words; and how it ended.
std::string reason_of(const JobResult& result);

/// "; LINE on standard output is no event, ..." for the reason of a failure to which JobResult::hidden_event may have
/// led; empty without one.
std::string clause_on_hidden_event(const JobResult& result);

}  // namespace plumbline::conformance
