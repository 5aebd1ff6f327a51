#include "runtime/engine/replicas/parameter_shards.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace plumbline::engine {
namespace {

/// No element of any type is divided.
constexpr size_t kWord = 8;

}  // namespace

ParameterShards::ParameterShards(const split::StageState& state, std::vector<at::Tensor> others, std::vector<int> ranks,
                                 transport::Transport& transport, int64_t tag)
    : others_(std::move(others)), ranks_(std::move(ranks)), transport_(transport), tag_(tag) {
  for (const auto& [name, parameter] : state.parameters) parameters_.push_back(parameter);
  divide();
}

void ParameterShards::divide() {
  blocks_.clear();
  parts_.clear();
  std::set<const void*> taken;
  for (const at::Tensor& other : others_) taken.insert(other.storage().unsafeGetStorageImpl());
  for (const at::Tensor& parameter : parameters_) {
    const c10::Storage& storage = parameter.storage();
    if (!taken.insert(storage.unsafeGetStorageImpl()).second) continue;
    blocks_.push_back(storage);
    auto* begin = static_cast<std::byte*>(storage.mutable_data());
    const size_t bytes = storage.nbytes(), words = (bytes + kWord - 1) / kWord, count = ranks_.size();
    for (size_t i = 0; i < count; ++i) {
      const size_t first = std::min(bytes, i * words / count * kWord);
      const size_t last = std::min(bytes, (i + 1) * words / count * kWord);
      if (last > first) parts_.push_back({begin + first, last - first, ranks_[i]});
    }
  }
}

void ParameterShards::shard(const transport::Deadline& deadline) {
  finish_gather(deadline);
  divide();
  for (const Part& part : parts_)
    if (part.rank != transport_.rank()) overwrite(part);
  sharded_ = true;
}

bool ParameterShards::divides(const at::Tensor& tensor) const {
  return std::ranges::any_of(blocks_, [&](const c10::Storage& block) { return block.is_alias_of(tensor.storage()); });
}

void ParameterShards::overwrite(const Part& part) const {
  const c10::Device device = blocks_.front().device();
  if (device.is_cpu())
    std::memset(part.data, 0xff, part.bytes);
  else
    at::from_blob(part.data, {static_cast<int64_t>(part.bytes)}, at::TensorOptions(at::kByte).device(device))
        .fill_(0xff);
}

void ParameterShards::begin_gather() {
  if (!sharded_) return;
  sharded_ = false;
  for (const Part& part : parts_) {
    if (part.rank != transport_.rank()) {
      pending_.push_back({transport_.irecv(part.data, part.bytes, part.rank, tag_), part.rank});
      continue;
    }
    for (const int peer : ranks_)
      if (peer != part.rank) pending_.push_back({transport_.isend(part.data, part.bytes, peer, tag_), peer});
  }
}

void ParameterShards::finish_gather(const transport::Deadline& deadline) {
  for (Pending& pending : pending_)
    transport_.wait(pending.request, deadline,
                    [&] { return "the exchange of sharded parameters with rank " + std::to_string(pending.rank); });
  pending_.clear();
}

}  // namespace plumbline::engine
