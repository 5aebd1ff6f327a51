#include "conformance/proof/executions/detached_boundaries.h"

#include "runtime/split/materialize.h"

namespace plumbline::proof {
namespace {

class NamesLeaves : public reference::DetachedObserver {
 public:
  explicit NamesLeaves(Recorder& recorder) : recorder_(recorder) {}
  void begins(int step, const models::Batch& batch) override { name_batch(recorder_, step, batch); }
  void holds(const split::StageState& state) override { name_state(recorder_, state); }

 private:
  Recorder& recorder_;
};

}  // namespace

ResultTerms run_detached_boundaries(const reference::Case& c, uint64_t seed, const reference::StageOrders& orders,
                                    Recorder& recorder) {
  NamesLeaves observer(recorder);
  const capture::InterposerScope observing(recorder);
  ResultTerms terms = terms_of(recorder, reference::run_detached(c, seed, orders, {}, c10::kCPU, &observer));
  std::erase_if(terms,
                [](const auto& one) { return !reference::is_boundary(reference::parse_result_key(one.first).kind); });
  return terms;
}

}  // namespace plumbline::proof
