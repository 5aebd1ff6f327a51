// A mutant that changes the options of the engine.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/mutants/mutants.h"

namespace plumbline::conformance {

/// `change` is called on every rank; the mutant counts it as an actual change.
inline Mutant options_mutant(std::string name, std::string what, std::function<void(engine::EngineOptions&)> change,
                             std::vector<Need> needs) {
  return {std::move(name), std::move(what),
          [change = std::move(change)](const FaultSite& site) {
            Fault fault;
            fault.options = [site, change](engine::EngineOptions& options) {
              site.happens();
              change(options);
            };
            return fault;
          },
          std::move(needs)};
}

}  // namespace plumbline::conformance
