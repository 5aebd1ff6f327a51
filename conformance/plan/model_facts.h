// What planning asks about the models of cases. Planning builds none itself; built_models() does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reference/case.h"
#include "runtime/engine/stage/partitioned_stage.h"
#include "runtime/schedule/check/check.h"

namespace plumbline::conformance {

class ModelFacts {
 public:
  virtual ~ModelFacts() = default;

  /// One more than a model of the zoo has split points.
  virtual int most_stages(const std::string& model, reference::Dtype dtype) = 0;
  virtual bool has_buffers(const reference::Case& c) = 0;
  /// Which stages hand values to which, as the model of a case is cut.
  virtual std::vector<schedule::StageEdge> edges(const reference::Case& c, int stages) = 0;
  /// As in remat.h.
  virtual std::string why_not_partitioned(const reference::Case& c, int stages,
                                          const engine::RematOptions& options) = 0;
};

/// Builds each model that it is asked about, of this seed. Answers are kept where they take long.
std::unique_ptr<ModelFacts> built_models(uint64_t seed);

}  // namespace plumbline::conformance
