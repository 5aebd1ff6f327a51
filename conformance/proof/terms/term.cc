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
  const std::lock_guard lock(mutex_);
  if (const auto known = known_heads_.find(bytes); known != known_heads_.end()) return known->second;
  const Named& named = heads_.emplace_back(Named{std::string(op), std::string(attributes), std::move(bytes)});
  const auto number = static_cast<Head>(heads_.size() - 1);
  known_heads_.emplace(named.bytes, number);
  return number;
}

Terms::Added Terms::add_numbered(Head head, std::span<const TermId> operands) {
  static thread_local std::string bytes;  // keeps its capacity
  {
    const std::lock_guard lock(mutex_);
    bytes = heads_.at(head).bytes;
  }
  for (const TermId& operand : operands) {
    append_number(bytes, operand.high);
    append_number(bytes, operand.low);
  }
  const Sha256 digest = sha256_of(bytes);
  const TermId id{big_endian(digest.data()), big_endian(digest.data() + 8)};
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[slot_of(id)];
  if (!slot.free()) return {id, slot.number};
  const size_t number = nodes_.size();
  slot = {static_cast<uint32_t>(number), static_cast<uint32_t>(id.high)};
  nodes_.push_back({id, head, static_cast<uint32_t>(operands.size()), operands_.size()});
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  if (nodes_.size() * 4 > slots_.size() * 3) grow();
  return {id, number};
}

/// The slot of the id's node, or the free one where it belongs.
size_t Terms::slot_of(const TermId& id) const {
  const size_t last = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(id.high);
  size_t slot = id.low & last;
  while (!slots_[slot].free() && (slots_[slot].tag != tag || nodes_[slots_[slot].number].id != id))
    slot = (slot + 1) & last;
  return slot;
}

void Terms::grow() {
  slots_.assign(slots_.size() * 2, {});
  for (uint32_t number = 0; number < nodes_.size(); ++number) {
    const TermId& id = nodes_[number].id;
    slots_[slot_of(id)] = {number, static_cast<uint32_t>(id.high)};
  }
}

Term Terms::at(const TermId& id) const {
  const size_t number = number_of(id);
  const std::lock_guard lock(mutex_);
  const Node& node = nodes_[number];
  const auto first = operands_.begin() + static_cast<std::ptrdiff_t>(node.first_operand);
  const Named& named = heads_[node.head];
  return {named.op, named.attributes, {first, first + node.operand_count}};
}

size_t Terms::number_of(const TermId& id) const {
  const std::lock_guard lock(mutex_);
  const Slot& slot = slots_[slot_of(id)];
  PLUMBLINE_CHECK(!slot.free(), "proof: no term " + to_string(id));
  return slot.number;
}

TermId Terms::id_of(size_t number) const {
  const std::lock_guard lock(mutex_);
  return nodes_.at(number).id;
}

bool Terms::any(std::string_view op) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(heads_, [&](const Named& named) { return named.op == op; });
}

size_t Terms::size() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size();
}

}  // namespace plumbline::proof
