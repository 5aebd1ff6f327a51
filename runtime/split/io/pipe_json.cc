#include "runtime/split/io/pipe_json.h"

#include <nlohmann/json.hpp>

#include "runtime/graph/io/json.h"

// Structured bindings decompose the structures: a new field does not compile until it is written and read here.
namespace plumbline::split {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "plumbline-pipe/1";
constexpr int kMost = std::numeric_limits<int>::max();

Json consumer_to_json(const Boundary::Consumer& consumer) {
  const auto& [stage, input] = consumer;
  return {{"stage", stage}, {"input", input}};
}

Json boundary_to_json(const Boundary& boundary) {
  const auto& [name, value, producer, output, consumers, has_gradient] = boundary;
  Json users = Json::array();
  for (const Boundary::Consumer& consumer : consumers) users.push_back(consumer_to_json(consumer));
  return {{"name", name},     {"value", to_json(value)},       {"producer", producer},
          {"output", output}, {"consumers", std::move(users)}, {"has_gradient", has_gradient}};
}

Json stage_to_json(const Stage& stage, bool with_graph) {
  const auto& [graph, inputs, outputs] = stage;
  return {{"graph", with_graph ? to_json(graph) : Json(nullptr)}, {"inputs", inputs}, {"outputs", outputs}};
}

Json shared_to_json(const SharedParameter& shared) {
  const auto& [name, stages] = shared;
  return {{"name", name}, {"stages", stages}};
}

Json local_loss_to_json(const LocalLoss& loss) {
  const auto& [stage, output, model_output] = loss;
  return {{"stage", stage}, {"output", output}, {"model_output", model_output}};
}

std::vector<int> indices(const JsonPlace& place, size_t count) {
  std::vector<int> read;
  for (const JsonPlace& item : place.items()) read.push_back(item.small(0, static_cast<int>(count) - 1));
  return read;
}

Boundary boundary_from_json(const JsonPlace& place, size_t num_stages) {
  place.expect_only({"name", "value", "producer", "output", "consumers", "has_gradient"});
  const int last = static_cast<int>(num_stages) - 1;
  Boundary read;
  auto& [name, value, producer, output, consumers, has_gradient] = read;
  name = place["name"].text();
  value = graph::value_from_json(place["value"]);
  producer = place["producer"].small(0, last);
  output = place["output"].small(0, kMost);
  for (const JsonPlace& item : place["consumers"].items()) {
    item.expect_only({"stage", "input"});
    consumers.push_back({item["stage"].small(0, last), item["input"].small(0, kMost)});
  }
  has_gradient = place["has_gradient"].boolean();
  return read;
}

Stage stage_from_json(const JsonPlace& place, size_t num_boundaries) {
  place.expect_only({"graph", "inputs", "outputs"});
  Stage read;
  auto& [graph, inputs, outputs] = read;
  if (!place["graph"].is_null()) graph = graph::graph_from_json(place["graph"]);
  inputs = indices(place["inputs"], num_boundaries);
  outputs = indices(place["outputs"], num_boundaries);
  return read;
}

LocalLoss local_loss_from_json(const JsonPlace& place, size_t num_stages) {
  place.expect_only({"stage", "output", "model_output"});
  return {place["stage"].small(0, static_cast<int>(num_stages) - 1), place["output"].small(0, kMost),
          place["model_output"].small(0, kMost)};
}

SharedParameter shared_from_json(const JsonPlace& place, size_t num_stages) {
  place.expect_only({"name", "stages"});
  SharedParameter read;
  auto& [name, stages] = read;
  name = place["name"].text();
  stages = indices(place["stages"], num_stages);
  return read;
}

}  // namespace

Json to_json(const Pipe& pipe, const std::function<bool(int)>& with_graph) {
  const auto& [stages, boundaries, shared, local_losses, ends_early] = pipe;
  Json json = {
      {"format", kFormat}, {"stages", Json::array()}, {"boundaries", Json::array()}, {"shared", Json::array()}};
  for (size_t s = 0; s < stages.size(); ++s)
    json["stages"].push_back(stage_to_json(stages[s], with_graph(static_cast<int>(s))));
  for (const Boundary& boundary : boundaries) json["boundaries"].push_back(boundary_to_json(boundary));
  for (const SharedParameter& parameter : shared) json["shared"].push_back(shared_to_json(parameter));
  for (const LocalLoss& loss : local_losses) json["local_losses"].push_back(local_loss_to_json(loss));
  if (ends_early) json["ends_early"] = true;
  return json;
}

Pipe pipe_from_json(const JsonPlace& place) {
  place.expect_only({"format", "stages", "boundaries", "shared", "local_losses", "ends_early"});
  if (place["format"].text() != kFormat) place["format"].fail("\"" + std::string(kFormat) + "\"");
  Pipe read;
  auto& [stages, boundaries, shared, local_losses, ends_early] = read;
  const std::vector<JsonPlace> stage_places = place["stages"].items();
  const std::vector<JsonPlace> boundary_places = place["boundaries"].items();
  for (const JsonPlace& item : boundary_places) boundaries.push_back(boundary_from_json(item, stage_places.size()));
  for (const JsonPlace& item : stage_places) stages.push_back(stage_from_json(item, boundary_places.size()));
  for (const JsonPlace& item : place["shared"].items()) shared.push_back(shared_from_json(item, stage_places.size()));
  if (const auto losses = place.find("local_losses"))
    for (const JsonPlace& item : losses->items())
      local_losses.push_back(local_loss_from_json(item, stage_places.size()));
  if (const auto early = place.find("ends_early")) ends_early = early->boolean();
  return read;
}

}  // namespace plumbline::split
