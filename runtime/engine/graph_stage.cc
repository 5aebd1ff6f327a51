#include "runtime/engine/graph_stage.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <mutex>

#include "runtime/backward/stage_backward.h"
#include "runtime/microbatch/random_seed.h"

namespace plumbline {
namespace {

/// Seeds the default generator for one forward and puts it back. The generator is one for the whole process, so ranks
/// that are threads take turns here; stages that draw nothing never come by.
class SeededForward {
 public:
  explicit SeededForward(uint64_t seed) : turn_(turns()), generator_(at::detail::getDefaultCPUGenerator()) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    before_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~SeededForward() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(before_);
  }
  SeededForward(const SeededForward&) = delete;
  SeededForward& operator=(const SeededForward&) = delete;

 private:
  static std::mutex& turns() {
    static std::mutex mutex;
    return mutex;
  }
  std::lock_guard<std::mutex> turn_;
  at::Generator generator_;
  at::Tensor before_;
};

}  // namespace

GraphStage::GraphStage(int stage, const std::vector<const Graph*>& graphs, std::vector<int> variants,
                       const RandomContext& random)
    : stage_(stage), variants_(std::move(variants)), random_(random) {
  for (const Graph* graph : graphs) {
    interpreters_.emplace_back(*graph);
    draws_random_numbers_ =
        draws_random_numbers_ || std::any_of(graph->nodes.begin(), graph->nodes.end(), &draws_random_numbers);
  }
}

void GraphStage::forward(int microbatch, std::span<const at::Tensor> inputs, std::vector<at::Tensor>& outputs) {
  Interpreter& interpreter = interpreters_[variants_[microbatch]];
  if (!draws_random_numbers_) {
    interpreter.run(inputs, outputs);
    return;
  }
  const SeededForward seeded(stage_random_seed(random_.run_seed, random_.step, stage_, microbatch));
  interpreter.run(inputs, outputs);
}

void GraphStage::backward(int, std::span<const at::Tensor> roots, std::span<const at::Tensor> root_grads,
                          std::span<const at::Tensor> inputs, std::vector<at::Tensor>& input_grads) {
  stage_backward(roots, root_grads, inputs, input_grads);
}

}  // namespace plumbline
