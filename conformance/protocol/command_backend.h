// A backend that is a program: started once for each verb, its answers and events read from standard output.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "conformance/protocol/backend.h"
#include "conformance/protocol/backend_file.h"
#include "conformance/protocol/transport_kind.h"

namespace plumbline::conformance {

/// Environment variables for mpirun and the ranks: the settings of the launchers of Open MPI 4 and 5 and of MPICH at
/// once; each reads its own and ignores the rest.
std::map<std::string, std::string> rank_environment();

/// In one line, that the temporary folder has less room than ranks and their launcher need: Open MPI's then wait for
/// ever, without a word. Empty if it has more.
std::string lack_of_room();

/// The reason of a failure in one line: what a rank printed behind "plumbline: ", else the first exception that it
/// names, else its last words; and how it ended.
std::string reason_of(const JobResult& result);

/// "; LINE on standard output is no event, ..." for the reason of a failure to which JobResult::hidden_event may have
/// led; empty without one.
std::string clause_on_hidden_event(const JobResult& result);

/// Prefix of event lines on a backend's standard output.
inline constexpr std::string_view kEventPrefix = "@plumbline ";

class CommandBackend : public Backend {
 public:
  /// `transport`: of the ranks, where the program is our runtime; see words_for().
  explicit CommandBackend(BackendSpec spec, TransportKind transport = TransportKind::Own)
      : spec_(std::move(spec)), transport_(transport) {}

  std::string name() const override { return spec_.name; }
  BackendDescription describe() const override;
  /// Writes OUT/job.json.
  std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const override;
  /// Writes OUT/job.json; kills the program's processes when the run ends.
  JobResult run(const Job& job, const std::filesystem::path& out, const OnEvent& on_event) const override;

 private:
  std::string answer(const std::string& verb, const std::string& job) const;

  BackendSpec spec_;
  TransportKind transport_;
};

}  // namespace plumbline::conformance
