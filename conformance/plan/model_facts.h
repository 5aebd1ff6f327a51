// What planning needs to know of the models of cases. No torch: planning builds no model; built_models() does.
#pragma once

#include <string>
#include <vector>

#include "reference/case.h"
#include "runtime/engine/stage/remat_options.h"
#include "runtime/schedule/check/check.h"

namespace plumbline::conformance {

class ModelFacts {
 public:
  virtual ~ModelFacts() = default;

  /// One more than a model of the zoo has split points.
  virtual int most_stages(const std::string& model, reference::Dtype dtype) = 0;
  virtual bool has_buffers(const reference::Case& c) = 0;
  /// Throws InputError if the loss of a case does not fit its model.
  virtual void require_loss(const reference::Case& c) = 0;
  /// Which stages send values to which, as the model of a case is cut.
  virtual std::vector<schedule::StageEdge> edges(const reference::Case& c, int stages) = 0;
  /// Why the case, cut into so many stages, cannot run with these options, in one line; empty when it can. Every stage
  /// is traced and partitioned for each shape of micro-batch.
  virtual std::string why_not_partitioned(const reference::Case& c, int stages,
                                          const engine::RematOptions& options) = 0;
};

}  // namespace plumbline::conformance
