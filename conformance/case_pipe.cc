#include "conformance/case_pipe.h"

#include "runtime/split/module_pipe.h"

namespace plumbline {

Pipe case_pipe(const Case& c, const Model& model, int stages, uint64_t seed) {
  SplitOptions split;
  split.points = stage_points(model, stages);
  const Batch batch = make_batch(c.model, c.dtype, c.rows, seed, 0);
  return make_pipe({model.module.get(), model.forward, model.input_names}, batch.inputs, /*training=*/true, split);
}

}  // namespace plumbline
