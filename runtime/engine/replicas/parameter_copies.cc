#include "runtime/engine/replicas/parameter_copies.h"

#include <utility>

namespace plumbline::engine {

std::vector<ParameterCopies> parameter_copies(const std::map<int, split::StageState>& states,
                                              const std::map<std::string, std::set<int>>& stages_with,
                                              const schedule::Schedule& schedule) {
  std::map<std::pair<int, std::string>, ParameterCopies> found;
  for (const auto& [own, state] : states)
    for (const auto& [name, tensor] : state.parameters) {
      const std::set<int>& stages = stages_with.at(name);
      ParameterCopies parameter{name, {}};
      for (const int stage : stages)
        for (const int rank : ranks_of_stage(schedule, stage)) parameter.copies.push_back({stage, rank});
      if (parameter.copies.size() > 1) found.emplace(std::pair(*stages.begin(), name), std::move(parameter));
    }
  std::vector<ParameterCopies> parameters;
  for (auto& [key, parameter] : found) parameters.push_back(std::move(parameter));
  return parameters;
}

}  // namespace plumbline::engine
