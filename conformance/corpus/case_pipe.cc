#include "conformance/corpus/case_pipe.h"

#include "runtime/split/module_pipe.h"

namespace plumbline::conformance {

split::Pipe case_pipe(const reference::Case& c, const models::Model& model, int stages, uint64_t seed) {
  const split::SplitOptions split = models::case_split(c, model, stages);
  const models::Batch batch = models::make_batch(c.model, c.dtype, c.rows, seed, 0);
  return split::make_pipe({model.module.get(), model.forward, model.input_names}, batch.inputs, /*training=*/true,
                          split);
}

}  // namespace plumbline::conformance
