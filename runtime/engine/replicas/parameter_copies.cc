#include "runtime/engine/replicas/parameter_copies.h"

#include <algorithm>
#include <utility>

namespace plumbline::engine {

std::vector<ParameterCopies> parameter_copies(const std::map<int, split::StageState>& states,
                                              const std::vector<split::SharedParameter>& shared,
                                              const schedule::Schedule& schedule) {
  std::map<std::pair<int, std::string>, ParameterCopies> found;
  const auto add = [&](const std::string& name, const std::vector<int>& stages) {
    ParameterCopies parameter{name, {}};
    for (const int stage : stages)
      for (const int rank : ranks_of_stage(schedule, stage)) parameter.copies.push_back({stage, rank});
    if (parameter.copies.size() > 1) found.emplace(std::pair(stages.front(), name), std::move(parameter));
  };
  for (const auto& [stage, state] : states)
    for (const auto& [name, tensor] : state.parameters) {
      const auto several = std::ranges::find(shared, name, &split::SharedParameter::name);
      add(name, several == shared.end() ? std::vector<int>{stage} : several->stages);
    }
  std::vector<ParameterCopies> parameters;
  for (auto& [key, parameter] : found) parameters.push_back(std::move(parameter));
  return parameters;
}

}  // namespace plumbline::engine
