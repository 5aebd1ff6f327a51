// ParameterShards: the parameters of one stage, divided among the ranks that hold the stage.
//
// Between uses each rank has only its own part of each parameter, as in ZeRO stage 3 (Rajbhandari et al., arXiv
// 1910.02054): of the n words of 8 bytes of a parameter's memory, rank i of k has the words from i * n / k to
// (i + 1) * n / k. The others are overwritten with 0xff, not-a-number in every floating-point type, so that a use
// without gathering shows in the results. The memory stays allocated: this shows the data flow of sharding, it does not
// save memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <vector>

#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline::engine {

class ParameterShards {
 public:
  /// `ranks`: the ranks that hold the stage, among them that of `transport`. Memory that also belongs to a tensor in
  /// `others` (a parameter of another stage, a buffer) is not divided. `tag` belongs to this stage alone.
  ParameterShards(const split::StageState& state, std::vector<at::Tensor> others, std::vector<int> ranks,
                  transport::Transport& transport, int64_t tag);

  /// Overwrites the parts of other ranks, after a gathering in progress has ended. Divides the memory that the tensors
  /// have now: set_data() and torch::load() give a parameter other memory between two steps.
  void shard(const transport::Deadline& deadline);
  /// Begins to exchange the parts; does nothing if the parameters are whole or the exchange has begun. Does not block.
  void begin_gather();
  /// Waits until the parameters are whole, if an exchange has begun. Throws as Transport::wait() does.
  void finish_gather(const transport::Deadline& deadline);
  /// Whether some parts are missing and no exchange has begun.
  bool is_sharded() const { return sharded_; }
  /// Whether `tensor` lies in memory that is divided, so that shard() overwrites it: what leaves the stage must be a
  /// copy.
  bool divides(const at::Tensor& tensor) const;
  /// Call after an error, when the transport has withdrawn all transfers.
  void abandon() noexcept { pending_.clear(); }

 private:
  /// The bytes of one memory block that rank `of` has.
  struct Part {
    std::byte* data;
    size_t bytes;
    int rank;
  };
  struct Pending {
    transport::Request request;
    int rank;
  };

  void divide();
  void overwrite(const Part& part) const;

  std::vector<at::Tensor> parameters_;
  const std::vector<at::Tensor> others_;
  const std::vector<int> ranks_;
  transport::Transport& transport_;
  const int64_t tag_;
  std::vector<c10::Storage> blocks_;  // the divided memory; lives until no part is used
  std::vector<Part> parts_;           // of all blocks and ranks; the own parts too
  std::vector<Pending> pending_;
  bool sharded_ = false;
};

}  // namespace plumbline::engine
