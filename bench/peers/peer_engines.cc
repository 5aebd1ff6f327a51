#include "bench/peers/peer_engines.h"

#include <algorithm>

#include "runtime/error.h"

namespace plumbline::bench {

std::span<const PeerEngine> peer_engines() {
  static const std::vector<PeerEngine> engines = {
      {"pytorch",
       "PyTorch",
       "torch",
       "torch 2.15.0",
       {"gpipe", "1f1b", "interleaved-1f1b", "looped-bfs", "interleaved-zero-bubble", "zb-v", "dualpipe-v"},
       "its own schedule class, PipelineStage with given shapes"},
      {"deepspeed",
       "DeepSpeed",
       "deepspeed",
       "deepspeed 0.19.8",
       {"1f1b"},
       "train_batch() with the sum of the losses over ranks and an optimizer that changes nothing"},
      {"dualpipe",
       "DualPipe",
       "dualpipe",
       "dualpipe 1.0.0",
       {"dualpipe"},
       "plain modules, and an all-reduce of the gradients of the two replicas"},
      {"megatron",
       "Megatron-core",
       "megatron-core",
       "megatron-core 0.16.1",
       {"1f1b", "interleaved-1f1b"},
       "its own schedules and DistributedDataParallel; messages batched in 1f1b, overlapped in interleaved-1f1b"}};
  return engines;
}

const PeerEngine& peer_engine(const std::string& name) {
  const auto found = std::ranges::find(peer_engines(), name, &PeerEngine::name);
  PLUMBLINE_CHECK(found != peer_engines().end(), name);
  return *found;
}

}  // namespace plumbline::bench
