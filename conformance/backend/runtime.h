// The runtime of this process as a backend: the engine executes each case of a job, and rank 0 writes the results of
// each rank to a file.
#pragma once

#include <c10/core/Device.h>

#include "conformance/protocol/backend.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

class Runtime : public Backend {
 public:
  /// run() starts the job's ranks as threads.
  Runtime() = default;
  /// This process is one rank, which computes on `device`; every rank calls run() with the same job.
  Runtime(transport::Transport& rank, c10::Device device) : rank_(&rank), device_(device) {}

  std::string name() const override { return "plumbline runtime"; }
  BackendDescription describe() const override;
  std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const override;
  /// Rank 0 reports the events; a case is done when it has written the files of all ranks, in `out`, which the others
  /// need not see. An exception of any rank aborts the others with its reason and is rethrown.
  JobResult run(const Job& job, const std::filesystem::path& out, const OnEvent& on_event) const override;

 private:
  transport::Transport* rank_ = nullptr;
  c10::Device device_ = c10::kCPU;
};

}  // namespace plumbline::conformance
