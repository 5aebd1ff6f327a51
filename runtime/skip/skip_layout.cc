#include "runtime/skip/skip_layout.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/error.h"
#include "runtime/skip/skippable.h"
#include "runtime/skip/verify_skippables.h"
#include "runtime/text/join.h"

namespace plumbline::skip {
namespace {

using StashedAt = std::map<SkipKey, int>;

void visit(const torch::nn::Module& module, int partition, StashedAt& stashed_at, std::vector<SkipRoute>& routes) {
  const auto* layer = dynamic_cast<const SkippableBase*>(&module);
  if (layer)
    for (const std::string& name : layer->poppable()) {
      const SkipKey key = layer->key(name);
      routes.push_back({stashed_at.at(key), partition, key});
    }
  for (const auto& child : module.children()) visit(*child, partition, stashed_at, routes);
  if (layer)
    for (const std::string& name : layer->stashable()) stashed_at.emplace(layer->key(name), partition);
}

void require_balance(const std::vector<int>& balance, size_t children) {
  const int64_t sum = std::accumulate(balance.begin(), balance.end(), int64_t{0});
  if (std::any_of(balance.begin(), balance.end(), [](int count) { return count < 1; }) ||
      sum != static_cast<int64_t>(children)) {
    std::vector<std::string> counts;
    for (int count : balance) counts.push_back(std::to_string(count));
    throw InputError("balance [" + join(counts) + "]: the sequence has " + std::to_string(children) +
                     " children; give how many of them, at least 1, each partition has");
  }
}

}  // namespace

SkipLayout::SkipLayout(std::vector<SkipRoute> routes) : routes_(std::move(routes)) {
  std::sort(routes_.begin(), routes_.end(), [](const SkipRoute& a, const SkipRoute& b) {
    return std::tie(a.to, a.from, a.key) < std::tie(b.to, b.from, b.key);
  });
}

std::vector<SkipRoute> SkipLayout::copies_to(int partition) const {
  std::vector<SkipRoute> copies;
  for (const SkipRoute& route : routes_)
    if (route.to == partition && route.from != partition) copies.push_back(route);
  return copies;
}

bool SkipLayout::requires_copy(const SkipKey& key) const {
  return std::any_of(routes_.begin(), routes_.end(),
                     [&](const SkipRoute& route) { return route.key == key && route.from != route.to; });
}

SkipLayout inspect_skip_layout(const torch::nn::Module& sequence, const std::vector<int>& balance) {
  verify_skippables(sequence);
  const auto children = sequence.children();
  require_balance(balance, children.size());
  StashedAt stashed_at;
  std::vector<SkipRoute> routes;
  size_t child = 0;
  for (size_t partition = 0; partition < balance.size(); ++partition)
    for (int i = 0; i < balance[partition]; ++i)
      visit(*children[child++], static_cast<int>(partition), stashed_at, routes);
  return SkipLayout(std::move(routes));
}

}  // namespace plumbline::skip
