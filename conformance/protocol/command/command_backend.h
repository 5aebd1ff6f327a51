// A backend that is a program: started once for each verb, its answers and events read from standard output.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "conformance/protocol/backend.h"
#include "conformance/protocol/command/backend_file.h"
#include "conformance/protocol/transport_kind.h"

namespace plumbline::conformance {

/// Environment variables for mpirun and the ranks: the settings of the launchers of Open MPI 4 and 5 and of MPICH at
/// once; each reads its own and ignores the rest.
std::map<std::string, std::string> rank_environment();

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
