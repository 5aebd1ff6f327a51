// Mutants that change what stages get and give.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/mutants/hooked_stage.h"
#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {

using MakeStageHooks = std::function<StageHooks(const FaultSite& site, int stage)>;

/// `hooks` is called once for each stage of a rank.
inline Mutant stage_mutant(std::string name, std::string what, MakeStageHooks hooks, std::vector<Need> needs = {}) {
  return {std::move(name), std::move(what),
          [hooks = std::move(hooks)](const FaultSite& site) {
            return stage_fault(site, [site, hooks](int stage, const split::StageState&) { return hooks(site, stage); });
          },
          std::move(needs)};
}

}  // namespace plumbline::conformance
