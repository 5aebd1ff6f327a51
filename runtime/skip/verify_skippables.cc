#include "runtime/skip/verify_skippables.h"

#include <torch/nn/module.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/skip/skippable.h"

namespace plumbline::skip {
namespace {

class Verification {
 public:
  void visit(const torch::nn::Module& module, const std::string& path) {
    const auto* layer = dynamic_cast<const SkippableBase*>(&module);
    if (layer && !seen_.emplace(layer, path).second) {
      problem("'" + path + "' is the same module as '" + seen_.at(layer) +
              "', whose names are stashed and popped once");
      return;
    }
    const size_t place = layer ? enter(*layer, path) : 0;
    for (const auto& child : module.named_children())
      visit(*child.value(), path.empty() ? child.key() : path + "." + child.key());
    if (layer) leave(*layer, path, place);
  }

  void finish() {
    for (const SkipKey& key : stashed_in_order_)
      if (!popped_.contains(key)) problem("no module declared '" + key.name + "' as poppable but stashed");
    if (problems_.empty()) return;
    std::string text = "one or more pairs of stash and pop do not match:\n";
    for (const std::string& problem : problems_) text += "\n* " + problem;
    throw InputError(text);
  }

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  /// Returns the index among the problems for those of its stashes: before those of its pops.
  size_t enter(const SkippableBase& layer, const std::string& path) {
    for (const std::string& name : layer.stashable())
      if (layer.poppable().contains(name))
        problem("'" + path + "' declared '" + name + "' both as stashable and as poppable");
    const size_t place = problems_.size();
    for (const std::string& name : layer.poppable()) {
      if (layer.stashable().contains(name)) continue;
      if (popped_.contains(layer.key(name)))
        problem("'" + path + "' redeclared '" + name + "' as poppable but not isolated by namespace");
      else if (!stashed_.contains(layer.key(name)))
        problem("'" + path + "' declared '" + name + "' as poppable but it was not stashed");
      else
        popped_.insert(layer.key(name));
    }
    return place;
  }

  void leave(const SkippableBase& layer, const std::string& path, size_t place) {
    for (const std::string& name : layer.stashable()) {
      if (layer.poppable().contains(name)) continue;
      const SkipKey key = layer.key(name);
      if (stashed_.insert(key).second)
        stashed_in_order_.push_back(key);
      else
        problems_.insert(problems_.begin() + static_cast<std::ptrdiff_t>(place++),
                         "'" + path + "' redeclared '" + name + "' as stashable but not isolated by namespace");
    }
  }

  std::map<const SkippableBase*, std::string> seen_;
  std::set<SkipKey> stashed_, popped_;
  std::vector<SkipKey> stashed_in_order_;
  std::vector<std::string> problems_;
};

}  // namespace

void verify_skippables(const torch::nn::Module& model) {
  Verification verification;
  verification.visit(model, "");
  verification.finish();
}

}  // namespace plumbline::skip
