#include "conformance/plan/model_facts.h"

#include <torch/nn/module.h>

#include <map>
#include <utility>

#include "conformance/corpus/case_pipe.h"
#include "conformance/plan/remat.h"
#include "reference/models/zoo.h"
#include "runtime/engine/plan/plan.h"

namespace plumbline::conformance {
namespace {

class BuiltModels : public ModelFacts {
 public:
  explicit BuiltModels(uint64_t seed) : seed_(seed) {}

  int most_stages(const std::string& model, reference::Dtype dtype) override { return known(model, dtype).most_stages; }

  bool has_buffers(const reference::Case& c) override { return known(c.model, c.dtype).has_buffers; }

  std::vector<schedule::StageEdge> edges(const reference::Case& c, int stages) override {
    return engine::stage_edges(case_pipe(c, models::make_model(c.model, c.dtype, seed_), stages, seed_));
  }

  std::string why_not_partitioned(const reference::Case& c, int stages, const engine::RematOptions& options) override {
    const auto [it, is_new] = not_partitioned_.try_emplace({c.id, stages});
    if (is_new) it->second = plumbline::conformance::why_not_partitioned(c, stages, seed_, options);
    return it->second;
  }

 private:
  struct Known {
    int most_stages = 1;
    bool has_buffers = false;
  };

  const Known& known(const std::string& name, reference::Dtype dtype) {
    const auto [it, is_new] = known_.try_emplace({name, dtype});
    if (is_new) {
      const models::Model model = models::make_model(name, dtype, seed_);
      it->second = {models::most_stages(model), !model.module->buffers().empty()};
    }
    return it->second;
  }

  uint64_t seed_;
  std::map<std::pair<std::string, reference::Dtype>, Known> known_;
  std::map<std::pair<std::string, int>, std::string> not_partitioned_;  // by case and stages
};

}  // namespace

std::unique_ptr<ModelFacts> built_models(uint64_t seed) { return std::make_unique<BuiltModels>(seed); }

}  // namespace plumbline::conformance
