#include "conformance/proof/terms/term.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/sha256.h"

namespace plumbline::proof {
namespace {

void append_number(std::string& bytes, uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

uint64_t big_endian(const unsigned char* bytes) {
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | bytes[i];
  return number;
}

}  // namespace

std::string to_string(const TermId& id) {
  std::string text(33, '\0');
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(id.high),
                static_cast<unsigned long long>(id.low));
  text.pop_back();
  return text;
}

Terms::Head Terms::head(std::string_view op, std::string_view attributes) {
  // Different terms have different bytes: every text is preceded by its length.
  std::string bytes;
  for (const std::string_view text : {op, attributes}) {
    append_number(bytes, text.size());
    bytes += text;
  }
  const std::lock_guard lock(heads_mutex_);
  if (const auto known = known_heads_.find(bytes); known != known_heads_.end()) return Head(*known->second);
  const Named& named = heads_.emplace_back(Named{.op = std::string(op),
                                                 .attributes = std::string(attributes),
                                                 .bytes = std::move(bytes),
                                                 .number = static_cast<uint32_t>(heads_.size())});
  known_heads_.emplace(named.bytes, &named);
  return Head(named);
}

Terms::Added Terms::add_numbered(Head head, std::span<const TermId> operands) {
  static thread_local std::string bytes;  // keeps its capacity
  bytes = head.named_->bytes;
  for (const TermId& operand : operands) {
    append_number(bytes, operand.high);
    append_number(bytes, operand.low);
  }
  const Sha256 digest = sha256_of(bytes);
  const TermId id{big_endian(digest.data()), big_endian(digest.data() + 8)};
  Shard& shard = shards_[shard_of(id)];
  const auto number_of = [&](size_t node) { return node * kShards + shard_of(id); };
  const std::lock_guard lock(shard.mutex);
  Slot& slot = shard.slots[shard.slot_of(id)];
  if (!slot.free()) return {id, number_of(slot.number)};
  const size_t node = shard.nodes.size();
  slot = {static_cast<uint32_t>(node), static_cast<uint32_t>(id.high)};
  shard.nodes.push_back({id, head.named_->number, static_cast<uint32_t>(operands.size()), shard.operands.size()});
  shard.operands.insert(shard.operands.end(), operands.begin(), operands.end());
  if (shard.nodes.size() * 4 > shard.slots.size() * 3) shard.grow();
  return {id, number_of(node)};
}

/// The slot of the id's node, or the free one where it belongs.
size_t Terms::Shard::slot_of(const TermId& id) const {
  const size_t last = slots.size() - 1;
  const auto tag = static_cast<uint32_t>(id.high);
  size_t slot = id.low & last;
  while (!slots[slot].free() && (slots[slot].tag != tag || nodes[slots[slot].number].id != id))
    slot = (slot + 1) & last;
  return slot;
}

void Terms::Shard::grow() {
  slots.assign(slots.size() * 2, {});
  for (uint32_t number = 0; number < nodes.size(); ++number) {
    const TermId& id = nodes[number].id;
    slots[slot_of(id)] = {number, static_cast<uint32_t>(id.high)};
  }
}

Terms::Head Terms::head_of(const TermId& id) const {
  const size_t number = number_of(id);
  const Shard& shard = shards_[number % kShards];
  const std::scoped_lock lock(shard.mutex, heads_mutex_);
  return Head(heads_[shard.nodes[number / kShards].head]);
}

Term Terms::at(const TermId& id) const {
  const size_t number = number_of(id);
  const Shard& shard = shards_[number % kShards];
  const std::scoped_lock lock(shard.mutex, heads_mutex_);
  const Node& node = shard.nodes[number / kShards];
  const auto first = shard.operands.begin() + static_cast<std::ptrdiff_t>(node.first_operand);
  const Named& named = heads_[node.head];
  return {named.op, named.attributes, {first, first + node.operand_count}};
}

size_t Terms::number_of(const TermId& id) const {
  const Shard& shard = shards_[shard_of(id)];
  const std::lock_guard lock(shard.mutex);
  const Slot& slot = shard.slots[shard.slot_of(id)];
  PLUMBLINE_CHECK(!slot.free(), "proof: no term " + to_string(id));
  return slot.number * kShards + shard_of(id);
}

size_t Terms::numbers_end() const {
  size_t most = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    most = std::max(most, shard.nodes.size());
  }
  return most * kShards;
}

TermId Terms::id_of(size_t number) const {
  const Shard& shard = shards_[number % kShards];
  const std::lock_guard lock(shard.mutex);
  return shard.nodes.at(number / kShards).id;
}

bool Terms::any(std::string_view op) const {
  const std::lock_guard lock(heads_mutex_);
  return std::ranges::any_of(heads_, [&](const Named& named) { return named.op == op; });
}

size_t Terms::size() const {
  size_t size = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    size += shard.nodes.size();
  }
  return size;
}

}  // namespace plumbline::proof
