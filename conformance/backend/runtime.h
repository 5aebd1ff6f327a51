// The runtime of this process as a backend: the engine executes each case of a job, and rank 0 writes the results of
// each rank to a file.
#pragma once

#include <c10/core/Device.h>

#include "conformance/protocol/backend.h"
#include "runtime/transport/transport.h"

namespace plumbline::conformance {

class Runtime : public Backend {
 public:
  /// run() starts the job's ranks as threads of this process, on the job's device.
  Runtime() = default;
  /// This process is one rank, which computes on `device`. `rank` is not owned and must outlive this object. Every rank
  /// calls run() with the same job, on the thread of its transport.
  Runtime(transport::Transport& rank, c10::Device device) : rank_(&rank), device_(device) {}

  std::string name() const override { return "plumbline runtime"; }
  BackendDescription describe() const override;
  std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const override;
  /// Only rank 0 calls `on_event`, on its own thread: when a case or a measurement begins, and when it is done. The
  /// call may block: the other ranks wait for it as long as Deadline::patient() allows. A case is done when every rank
  /// has executed it and rank 0 has written the result files of all ranks below `out`, which the other ranks need not
  /// see. An exception of any rank, also one of `on_event`, aborts the others with its reason and is rethrown
  /// (run_thread_ranks() says which, if ranks are threads). So a case that fails ends the job, and JobEvent::failed
  /// stays empty.
  JobResult run(const Job& job, const std::filesystem::path& out, const OnEvent& on_event) const override;

 private:
  transport::Transport* rank_ = nullptr;
  c10::Device device_ = c10::kCPU;
};

}  // namespace plumbline::conformance
