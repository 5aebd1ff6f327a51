// Our runtime as a backend of the runner.
#pragma once

#include "conformance/backend/runtime.h"
#include "conformance/protocol/command/command_backend.h"
#include "runtime/graph/error_text.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {

/// Runs jobs in processes of their own, like any backend. It describes itself and plans in this process, which holds
/// the same runtime: a process would need longer to start than to answer.
class OwnRuntime : public CommandBackend {
 public:
  using CommandBackend::CommandBackend;

  BackendDescription describe() const override { return Runtime().describe(); }
  std::vector<std::optional<PlanAnswer>> plan(const Job& job, const std::filesystem::path& out) const override {
    try {
      return Runtime().plan(job, out);
    } catch (const std::exception& error) {
      throw BackendError(name() + ": plan: " + one_line(graph::error_text(error)));
    }
  }
};

}  // namespace plumbline::conformance
