#include "conformance/proof/executions/stage_tracker.h"

#include <ATen/SequenceNumber.h>

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace plumbline::proof {

StageTracker::StageTracker(const torch::nn::Module& root, const std::vector<split::SplitPoint>& points,
                           std::function<void(int stage)> begins)
    : begins_(std::move(begins)) {
  for (const split::SplitPoint& point : points) {
    const torch::nn::Module* found = nullptr;
    for (const auto& item : root.named_modules())
      if (item.key() == point.module) found = item.value().get();
    PLUMBLINE_CHECK(found != nullptr, "proof: no module " + point.module);
    points_.push_back({found, point.where});
  }
}

void StageTracker::begin() {
  first_.clear();
  next_stage();
}

void StageTracker::next_stage() {
  first_.push_back(at::sequence_number::peek());
  begins_(static_cast<int>(first_.size()) - 1);
}

int StageTracker::stage_of(uint64_t sequence_number) const {
  return static_cast<int>(std::ranges::upper_bound(first_, sequence_number) - first_.begin()) - 1;
}

/// Points are in program order, and a module may be called several times: only the next point can be passed.
void StageTracker::pass(const torch::nn::Module& module, split::SplitPoint::Where where) {
  const size_t next = first_.size() - 1;
  if (next < points_.size() && points_[next].module == &module && points_[next].where == where) next_stage();
}

void StageTracker::enter(const torch::nn::Module& module) { pass(module, split::SplitPoint::Where::Beginning); }
void StageTracker::leave(const torch::nn::Module& module) { pass(module, split::SplitPoint::Where::End); }

}  // namespace plumbline::proof
