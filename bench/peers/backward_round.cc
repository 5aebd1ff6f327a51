#include "bench/peers/backward_round.h"

#include <torch/version.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "runtime/error.h"

namespace plumbline::bench {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kFewestPairs = 5;

}  // namespace

BackwardRound measure_round(const std::vector<ModelShape>& models, double seconds) {
  using Clock = std::chrono::steady_clock;
  BackwardRound round{.torch = TORCH_VERSION, .times = {}};
  for (const ModelShape& model : models) {
    BackwardStage stage(model);
    check_halves(stage);  // also warms up
    BackwardTimes& times = round.times.emplace_back();
    const Clock::time_point end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    while (times.full.size() < kFewestPairs || Clock::now() < end) measure_pair(stage, times);
  }
  return round;
}

TensorMap compute_gradients(const std::vector<ModelShape>& models, bool halves) {
  TensorMap gradients;
  for (const ModelShape& model : models) {
    BackwardStage stage(model);
    stage.forward();
    if (halves) {
      stage.input_backward();
      stage.weight_backward();
    } else {
      stage.full_backward();
    }
    gradients.merge(stage.gradients());
  }
  return gradients;
}

std::string to_json(const BackwardRound& round) {
  Json json = {{"torch", round.torch}, {"models", Json::array()}};
  for (const BackwardTimes& times : round.times)
    json["models"].push_back({{"full", times.full}, {"input", times.input}, {"weight", times.weight}});
  return json.dump() + "\n";
}

BackwardRound read_round(const std::filesystem::path& path) {
  try {
    const Json json = Json::parse(read_file(path));
    BackwardRound round{.torch = json.at("torch").get<std::string>(), .times = {}};
    for (const Json& model : json.at("models")) {
      BackwardTimes& times = round.times.emplace_back();
      for (const auto& [name, values] :
           {std::pair{"full", &times.full}, {"input", &times.input}, {"weight", &times.weight}})
        model.at(name).get_to(*values);
      if (times.full.size() < kFewestPairs || times.input.size() != times.full.size() ||
          times.weight.size() != times.full.size())
        throw Error("too few measured times");
    }
    return round;
  } catch (const std::exception& error) {
    throw Error(path.string() + ": not a valid file of round times: " + error.what());
  }
}

}  // namespace plumbline::bench
