// StageTracker: which stage of a cut the unsplit model's forward is in, from the modules that it enters and leaves.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/capture/call.h"
#include "runtime/split/cut/split_options.h"

namespace plumbline::proof {

class StageTracker : public capture::ModuleObserver {
 public:
  /// `root` must outlive the tracker. `begins` is called whenever a stage begins.
  StageTracker(const torch::nn::Module& root, const std::vector<split::SplitPoint>& points,
               std::function<void(int stage)> begins);

  /// Call it before each forward, which begins in stage 0.
  void begin();
  /// The stage in which an autograd node with this sequence number was made, in the forward since begin().
  int stage_of(uint64_t sequence_number) const;

  void enter(const torch::nn::Module& module) override;
  void leave(const torch::nn::Module& module) override;

 private:
  struct Point {
    const torch::nn::Module* module;
    split::SplitPoint::Where where;
  };
  void pass(const torch::nn::Module& module, split::SplitPoint::Where where);
  void next_stage();

  std::vector<Point> points_;
  std::function<void(int stage)> begins_;
  std::vector<uint64_t> first_;  ///< by stage: the sequence number of its first node
};

}  // namespace plumbline::proof
