// Memory: which value the memory of one rank holds, by storage.
//
// A storage holds one value with one layout. A tensor over it shows elements of that value, found by comparing layouts,
// so views need no record of their own, and a write through a view is a write to the storage. A tensor of another
// element type, as a view of complex numbers as pairs, shows the bits of the value, and one that is conjugated or
// negated by a mark shows the numbers so changed: both are terms of their own. The bytes are hashed whenever they are
// defined and compared whenever they are read: memory that changed without an operator (a raw copy, a reused buffer) no
// longer holds its value and becomes a constant, a leaf named after its bytes. Hollow memory (shapes/hollow_memory.h)
// has no bytes, so all of its changes come from operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <unordered_map>

#include "conformance/proof/terms/layout.h"
#include "conformance/proof/terms/value.h"
#include "conformance/proof/terms/views.h"

namespace plumbline::proof {

class Memory {
 public:
  explicit Memory(Terms& terms) : terms_(terms), elements_(terms) {}

  /// The value of a defined CPU tensor. A tensor of unknown memory is a constant: a leaf named after its bytes.
  Value read(const at::Tensor& tensor);
  /// The identity of that value.
  TermId term_of(const at::Tensor& tensor);
  TermId term_of(const Value& value) { return elements_.term_of(value); }
  /// The number that all of its elements are, as text; empty: not known to be one.
  std::string number(const at::Tensor& tensor);
  /// The tensor's storage holds `value` and nothing else.
  void define(const at::Tensor& tensor, Value value);
  /// The elements of `tensor` became `value`; the storage's other elements stay.
  void write(const at::Tensor& tensor, Value value);
  /// New memory without content, as empty() makes it.
  void define_unset(const at::Tensor& tensor);

  /// The elements in `bytes` bytes from `data` on, in the order in which they lie there; nullopt if no tensor of this
  /// rank has them.
  std::optional<Value> read_bytes(const void* data, size_t bytes);
  /// Bytes that arrived, and their value, which is kept if they fill a storage; nullopt: unknown.
  void define_bytes(void* data, size_t bytes, const std::optional<Value>& value);

  /// The number of reads that had to make a constant of bytes in memory whose value had been known.
  int64_t unseen_writes() const { return unseen_writes_; }

 private:
  using Strong = c10::intrusive_ptr<c10::StorageImpl>;
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  enum class State { Unset, Known, Unknown };
  struct Held {
    Weak storage;
    const std::byte* data = nullptr;
    size_t bytes = 0;
    State state = State::Unknown;
    Value value = {};    ///< if Known
    Layout layout = {};  ///< of `value`, or of the tensor that empty() made
    c10::ScalarType dtype = c10::ScalarType::Undefined;
    size_t digest = 0;  ///< of the bytes, if Known
  };

  Held* find(const at::Tensor& tensor);
  Held& hold(const at::Tensor& tensor);
  /// Whether the tensor shows all of the held value, as it lies there.
  static bool shows_all(const Held& held, const at::Tensor& tensor);
  Held* at_address(const void* data, size_t bytes);
  Value read(Held& held, const Layout& layout, c10::ScalarType dtype);
  /// The same where the tensor has another element type than the held value.
  Value read_bits(const Held& held, const at::Tensor& tensor);
  /// A value in one row as elements of another type, also in one row. The bits of bits are the value itself.
  Value bits_of(Value value, const Sizes& flat, c10::ScalarType dtype);
  /// The value of a tensor whose memory has `value`: conjugated or negated if the tensor is marked so.
  Value marked(const at::Tensor& tensor, Value value);
  Value constant(const at::Tensor& tensor);
  void sweep();

  Terms& terms_;
  Elements elements_;
  Views views_;
  std::pmr::unsynchronized_pool_resource nodes_;  ///< of the maps: storages come and go with each operator
  std::pmr::unordered_map<const c10::StorageImpl*, Held> held_{&nodes_};
  std::pmr::unordered_map<const std::byte*, const c10::StorageImpl*> by_address_{&nodes_};  ///< the latest one there
  size_t sweep_at_ = 4096;
  int64_t unseen_writes_ = 0;
};

}  // namespace plumbline::proof
