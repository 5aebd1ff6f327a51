// Makes GoogleTest count the failures of every MPI rank, not only those of the process that writes the report.
#pragma once

#include <gtest/gtest.h>

#include "runtime/transport/transport.h"

namespace plumbline::testing {

/// At the end of each test, the failures of all other ranks are sent to rank 0 and raised there as failures of the same
/// test, so that rank 0's console and XML are complete. A rank that does not end a test in time, or ends a different
/// one, aborts the job.
class MpiListener : public ::testing::EmptyTestEventListener {
 public:
  /// `world` must have all ranks of the job and outlive the listener.
  explicit MpiListener(transport::Transport& world) : world_(world) {}

  void OnTestEnd(const ::testing::TestInfo& test) override;

 private:
  transport::Transport& world_;
};

/// The highest exit code of all ranks, on every rank.
int agree_on_exit_code(transport::Transport& world, int code);

}  // namespace plumbline::testing
