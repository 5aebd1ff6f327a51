// A step of a recording as against.cc aligns it: copies added up, and nothing cut that the pipelined run has whole.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/recording/recording.h"

namespace plumbline::conformance {

/// Whether a value's name denotes an input or output of a module ("layers.3:in"), not a parameter or buffer.
bool is_event(std::string_view name);

/// Whether a value is what a micro-batch adds to the gradient of a parameter.
bool is_contribution(const ValueKey& key);

/// `name`, or the name that stands for it: a value of Recording::tied.
const std::string& first_name(const std::map<std::string, std::string>& tied, const std::string& name);

struct Step {
  RecordedStep values;
  /// Of the contributions that are sums over the copies of a tied parameter: the summands.
  std::map<ValueKey, std::vector<HostTensor>> summands = {};
};

/// Adds up, in each micro-batch, the contributions of all copies of a tied parameter: of the same name in several
/// stages, and of several names in `tied`, under the first. The sum is rounded once, to the dtype of the copies, and
/// has no stage. Copies that differ in dtype or shape, or are not of floating point, stay as they are.
Step add_up_copies(RecordedStep values, const std::map<std::string, std::string>& tied);

/// Undoes the recorder's cut of a value that is as long as the batch but has no rows of the batch (the embeddings of
/// positions, for one): `run` has it, in a micro-batch, in the shape of all pieces of `whole` together. `whole` then
/// has it so as well. Its gradients, of which a micro-batch has only a part, leave `whole`.
void join_uncut(RecordedStep& whole, const RecordedStep& run);

}  // namespace plumbline::conformance
