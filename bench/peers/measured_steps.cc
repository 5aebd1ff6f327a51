#include "bench/peers/measured_steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/error.h"

namespace plumbline::bench {

std::filesystem::path steps_file(const std::filesystem::path& out, const std::string& schedule, int rank,
                                 const char* suffix) {
  return out / (schedule + "." + std::to_string(rank) + suffix);
}

MeasuredSteps read_steps(const std::filesystem::path& out, const std::string& schedule, int ranks) {
  MeasuredSteps steps;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::filesystem::path path = steps_file(out, schedule, rank, ".json");
    try {
      const auto json = nlohmann::json::parse(read_file(path));
      const auto seconds = json.at("seconds").get<std::vector<double>>();
      const auto processor = json.at("processor_seconds").get<std::vector<double>>();
      if (rank == 0) {
        steps.seconds.resize(seconds.size());
        steps.cpu_seconds.resize(seconds.size());
      }
      if (seconds.empty() || seconds.size() != steps.seconds.size() || processor.size() != seconds.size())
        throw Error("not as many steps as rank 0 has");
      for (size_t i = 0; i < seconds.size(); ++i) {
        steps.seconds[i] = std::max(steps.seconds[i], seconds[i]);
        steps.cpu_seconds[i] += processor[i];
      }
      for (auto& [name, gradient] : read_tensor_file(steps_file(out, schedule, rank, ".safetensors"))) {
        const auto [before, is_first] = steps.gradients.try_emplace(name, gradient);
        if (!is_first && before->second != gradient)
          throw Error("the gradient of " + name + " is another one on an earlier rank");
      }
    } catch (const std::exception& error) {
      throw Error(path.string() + ": " + error.what());
    }
  }
  return steps;
}

}  // namespace plumbline::bench
