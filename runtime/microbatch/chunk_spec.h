// How one input (or output) of a step is divided among its micro-batches.
#pragma once

namespace plumbline::microbatch {

struct ChunkSpec {
  bool replicate = false;  ///< every micro-batch gets the whole value
  int dim = 0;             ///< otherwise the dimension that is divided
};

}  // namespace plumbline::microbatch

namespace plumbline {
using microbatch::ChunkSpec;
}  // namespace plumbline
