// ChunkSpec: the division of one input (or output) of a step among its micro-batches.
#pragma once

namespace plumbline::microbatch {

struct ChunkSpec {
  bool replicate = false;  ///< every micro-batch gets the whole value
  int dim = 0;             ///< the dimension that is divided, from 0; ignored with `replicate`
};

}  // namespace plumbline::microbatch

namespace plumbline {
using microbatch::ChunkSpec;
}  // namespace plumbline
