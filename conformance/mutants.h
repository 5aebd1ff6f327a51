// Mutants: faults put into a run on purpose, to show that the corpus catches them. They stand around the transport or a
// stage from outside; the engine knows nothing of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/stage_runner.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline {

using StageMutation = std::function<std::unique_ptr<StageRunner>(int stage, int microbatches, const StageState& state,
                                                                 std::unique_ptr<StageRunner> inner)>;

/// The decorated transport refers to `inner`, which must outlive it.
using TransportMutation = std::function<std::unique_ptr<Transport>(Transport& inner, int microbatches)>;

struct Mutant {
  std::string name;
  std::string what;  ///< one sentence
  int least_ranks = 1;
  StageMutation stage;          ///< empty: stages are left alone
  TransportMutation transport;  ///< empty: the transport is left alone
};

const std::vector<Mutant>& mutants();

/// Throws InputError naming the mutants there are.
const Mutant& find_mutant(const std::string& name);

}  // namespace plumbline
