#include "conformance/proof/terms/memory.h"

#include <atomic>
#include <functional>
#include <string_view>
#include <utility>

#include "conformance/proof/shapes/hollow_memory.h"
#include "runtime/io/sha256.h"

namespace plumbline::proof {
namespace {

size_t digest(const void* data, size_t bytes) {
  if (is_hollow(data)) return 0;
  return std::hash<std::string_view>()({static_cast<const char*>(data), bytes});
}

Layout layout_of(const at::Tensor& tensor) {
  return {tensor.storage_offset(), Sizes(tensor.sizes()), Sizes(tensor.strides())};
}

/// Whether the elements lie one after the other.
bool is_row_major(const Layout& layout) {
  int64_t stride = 1;
  for (size_t d = layout.sizes.size(); d-- > 0; stride *= layout.sizes[d])
    if (layout.sizes[d] > 1 && layout.strides[d] != stride) return false;
  return true;
}

}  // namespace

Memory::Held* Memory::find(const at::Tensor& tensor) {
  const auto known = held_.find(tensor.storage().unsafeGetStorageImpl());
  if (known == held_.end()) return nullptr;
  return known->second.data == static_cast<const std::byte*>(tensor.storage().data()) ? &known->second : nullptr;
}

Memory::Held& Memory::hold(const at::Tensor& tensor) {
  if (held_.size() >= sweep_at_) sweep();
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  const auto [entry, is_new] = held_.try_emplace(storage, Held{.storage = Weak(Strong::reclaim_copy(storage))});
  Held& held = entry->second;
  held.data = static_cast<const std::byte*>(storage->data());
  held.bytes = storage->nbytes();
  by_address_[held.data] = storage;
  return held;
}

/// Forgets the storages that no longer exist.
void Memory::sweep() {
  std::erase_if(held_, [](const auto& entry) { return entry.second.storage.expired(); });
  std::erase_if(by_address_, [&](const auto& entry) { return !held_.contains(entry.second); });
  sweep_at_ = std::max<size_t>(4096, 2 * held_.size());
}

Value Memory::constant(const at::Tensor& tensor) {
  if (is_hollow(tensor.storage().data())) {
    // It could be anything, so it is like nothing else.
    static std::atomic<int64_t> reads = 0;
    const std::string text =
        type_text(tensor.scalar_type(), Sizes(tensor.sizes())) + " hollow" + std::to_string(++reads);
    return whole(terms_.add({"unknown", text, {}}), Sizes(tensor.sizes()), tensor.scalar_type());
  }
  const at::Tensor dense = tensor.contiguous();
  return whole(terms_.add({"constant",
                           type_text(tensor.scalar_type(), Sizes(tensor.sizes())) + " " +
                               sha256({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()}),
                           {}}),
               Sizes(tensor.sizes()), tensor.scalar_type());
}

Value Memory::read(const at::Tensor& tensor) {
  // A tensor without elements, and one of a trial run on shapes alone, hold nothing.
  if (tensor.numel() == 0 || !tensor.device().is_cpu())
    return whole(terms_.add({"nothing", type_text(tensor.scalar_type(), Sizes(tensor.sizes())), {}}),
                 Sizes(tensor.sizes()), tensor.scalar_type());
  Held* held = find(tensor);
  if (held == nullptr || held->state != State::Known) return constant(tensor);
  const bool unchanged = digest(held->data, held->bytes) == held->digest;
  if (unchanged) {
    Value value = held->dtype == tensor.scalar_type() ? read(*held, layout_of(tensor), tensor.scalar_type())
                                                      : read_bits(*held, tensor);
    if (value.dtype != c10::ScalarType::Undefined) return marked(tensor, std::move(value));
  }
  // No operator wrote these bytes, so the value that they had is gone.
  if (!unchanged) ++unseen_writes_;
  return constant(tensor);
}

TermId Memory::term_of(const at::Tensor& tensor) {
  const Held* const held = tensor.numel() == 0 ? nullptr : find(tensor);
  const bool direct = held != nullptr && held->state == State::Known && shows_all(*held, tensor) && !tensor.is_conj() &&
                      !tensor.is_neg() && !held->value.picks && held->value.sizes == held->value.root_sizes &&
                      digest(held->data, held->bytes) == held->digest;
  return direct ? held->value.root : term_of(read(tensor));
}

Value Memory::read_bits(const Held& held, const at::Tensor& tensor) {
  const auto had = static_cast<int64_t>(c10::elementSize(held.dtype)),
             has = static_cast<int64_t>(tensor.element_size());
  const int64_t begin = held.layout.offset * had, bytes = count_of(held.layout.sizes) * had;
  if (!is_row_major(held.layout) || begin % has != 0 || bytes % has != 0) return {};
  const Sizes flat = {bytes / has};
  Value in_row = held.value;
  in_row.sizes = {count_of(held.layout.sizes)};
  Held other{.storage = held.storage,
             .value = bits_of(std::move(in_row), flat, tensor.scalar_type()),
             .layout = {begin / has, flat, {1}},
             .dtype = tensor.scalar_type()};
  return read(other, layout_of(tensor), tensor.scalar_type());
}

Value Memory::bits_of(Value value, const Sizes& flat, c10::ScalarType dtype) {
  if (!value.picks && value.source && value.source->dtype == dtype) return *value.source;
  Value bits = whole(terms_.add({"bits", type_text(dtype, flat), {term_of(value)}}), flat, dtype);
  bits.source = std::make_shared<const Value>(std::move(value));
  return bits;
}

Value Memory::marked(const at::Tensor& tensor, Value value) {
  for (const auto& [has, name] : {std::pair(tensor.is_conj(), "conjugated"), std::pair(tensor.is_neg(), "negated")})
    if (has)
      value =
          whole(terms_.add({name, type_text(value.dtype, value.sizes), {term_of(value)}}), value.sizes, value.dtype);
  return value;
}

std::string Memory::number(const at::Tensor& tensor) {
  const Held* const held = tensor.numel() == 0 ? nullptr : find(tensor);
  // A value that is no number does not become one by a view, so most reads are not necessary.
  if (held != nullptr && held->state == State::Known && held->value.number.empty()) return {};
  return read(tensor).number;
}

bool Memory::shows_all(const Held& held, const at::Tensor& tensor) {
  return held.dtype == tensor.scalar_type() && held.layout.offset == tensor.storage_offset() &&
         tensor.sizes().equals(held.layout.sizes) && tensor.strides().equals(held.layout.strides);
}

/// A value without a dtype if the layout shows memory outside of the held value.
Value Memory::read(Held& held, const Layout& layout, c10::ScalarType dtype) {
  if (layout == held.layout) return picked(terms_, held.value, held.value.picks, layout.sizes);
  const Views::Shared found = views_.between(held.layout, layout);
  if (!found) return {};
  Value value = picked(terms_, held.value, views_.both(held.value.picks, found), layout.sizes);
  value.dtype = dtype;
  return value;
}

void Memory::define(const at::Tensor& tensor, Value value) {
  if (tensor.numel() == 0 || !tensor.device().is_cpu()) return;
  Held& held = hold(tensor);
  if (tensor.is_conj() || tensor.is_neg()) {  // its memory holds other numbers than the value
    held.state = State::Unknown;
    return;
  }
  held.state = State::Known;
  held.value = std::move(value);
  held.layout = layout_of(tensor);
  held.dtype = tensor.scalar_type();
  held.digest = digest(held.data, held.bytes);
}

void Memory::define_unset(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || !tensor.device().is_cpu()) return;
  Held& held = hold(tensor);
  held.state = State::Unset;
  held.layout = layout_of(tensor);
  held.dtype = tensor.scalar_type();
}

void Memory::write(const at::Tensor& tensor, Value value) {
  if (tensor.numel() == 0 || !tensor.device().is_cpu()) return;
  Held* held = find(tensor);
  const Layout layout = layout_of(tensor);
  if (held == nullptr || held->state == State::Unknown || layout == held->layout ||
      held->dtype != tensor.scalar_type() || tensor.is_conj() || tensor.is_neg())
    return define(tensor, std::move(value));
  const Views::Shared found = views_.between(held->layout, layout);
  if (!found) {
    held->state = State::Unknown;
    return;
  }
  // A write through a view of all elements (autograd accumulates through transposed ones) replaces the value.
  if (found->count() == count_of(held->layout.sizes)) return define(tensor, std::move(value));
  const Sizes& sizes = held->layout.sizes;
  const TermId before =
      held->state == State::Known ? term_of(held->value) : terms_.add({"unset", type_text(held->dtype, sizes), {}});
  const std::string what = type_text(held->dtype, sizes) + " " + found->text();
  held->value = whole(terms_.add({"write", what, {before, term_of(value)}}), sizes, held->dtype);
  held->state = State::Known;
  held->digest = digest(held->data, held->bytes);
}

Memory::Held* Memory::at_address(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  if (bytes == 0) return nullptr;
  const auto contains = [&](const Held& held) {
    return held.data <= begin && begin + bytes <= held.data + held.bytes && !held.storage.expired();
  };
  // Most messages are whole storages.
  if (const auto known = by_address_.find(begin); known != by_address_.end())
    if (const auto held = held_.find(known->second); held != held_.end() && contains(held->second))
      return &held->second;
  for (auto& [storage, held] : held_)
    if (contains(held)) return &held;
  return nullptr;
}

std::optional<Value> Memory::read_bytes(const void* data, size_t bytes) {
  Held* held = at_address(data, bytes);
  if (held == nullptr || held->state != State::Known || digest(held->data, held->bytes) != held->digest) return {};
  const auto size = static_cast<int64_t>(c10::elementSize(held->dtype));
  const int64_t begin = static_cast<const std::byte*>(data) - held->data, count = static_cast<int64_t>(bytes);
  if (begin % size != 0 || count % size != 0) return {};
  Value value = read(*held, {begin / size, {count / size}, {1}}, held->dtype);
  return value.dtype == c10::ScalarType::Undefined ? std::nullopt : std::optional(std::move(value));
}

void Memory::define_bytes(void* data, size_t bytes, const std::optional<Value>& value) {
  Held* held = at_address(data, bytes);
  if (held == nullptr) return;
  const bool fits = value && held->data == data && held->bytes == bytes;
  held->state = fits ? State::Known : State::Unknown;
  if (!fits) return;
  held->value = *value;
  held->layout = {0, value->sizes, {1}};
  held->dtype = value->dtype;  // that of the sender: complex numbers may be a view of real ones there
  held->digest = digest(held->data, held->bytes);
}

}  // namespace plumbline::proof
