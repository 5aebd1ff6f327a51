// The gradients of a batch without a pipeline: the whole model by plain autograd, micro-batch after micro-batch. The
// oracle of the comparison of pipeline steps; it shares with the sides only the model.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/filled_model.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::bench {

class PlainGradients {
 public:
  /// Computes the gradients in float64, and in float32 with the number of threads set by at::set_num_threads().
  PlainGradients(const ModelShape& shape, int microbatches);

  /// Why these are not the gradients, in one line; empty if they are. Summation orders differ among schedules and
  /// libraries, so a parameter's gradient may be 16 times as far (by the Euclidean norm) from the one in float64 as the
  /// one in float32 is, or as one rounding of each element. A lost micro-batch is beyond that by orders of magnitude.
  std::string why_wrong(const TensorMap& gradients) const;

  /// The seconds of one more such batch in float32.
  double seconds();

  struct Microbatch {
    at::Tensor input, target;
  };

 private:
  struct Expected {
    at::Tensor value;  ///< float64
    double furthest = 0;
  };

  std::shared_ptr<FilledModel> model_;
  std::vector<Microbatch> batch_;
  std::map<std::string, Expected> expected_;
};

}  // namespace plumbline::bench
