#include "runtime/split/io/stored_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/view_as_complex.h>

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "runtime/error.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/dtype_names.h"
#include "runtime/graph/host_tensors.h"

namespace plumbline::split {
namespace {

using Json = nlohmann::json;

std::string base_key(const graph::Attribute& attribute, int depth) {
  std::string prefix;
  for (int i = 0; i < depth; ++i) prefix += "branch/";
  if (attribute.kind == graph::AttributeKind::Constant) return prefix + "constant/" + attribute.name;
  return prefix + (attribute.persistent ? "" : "transient/") + attribute.name;
}

/// The element type whose bits represent `dtype` in a file: complex numbers are pairs, bytes hold 8-bit floats.
bool is_small_float(at::ScalarType dtype) { return at::isFloatingType(dtype) && c10::elementSize(dtype) == 1; }

at::Tensor as_file_type(const at::Tensor& tensor) {
  if (is_small_float(tensor.scalar_type())) return tensor.contiguous().view(at::kByte);
  return graph::in_pairs(tensor);
}

at::Tensor from_file_type(const at::Tensor& tensor, at::ScalarType dtype) {
  if (at::isComplexType(dtype) && tensor.dim() > 0 && tensor.size(-1) == 2 && at::isFloatingType(tensor.scalar_type()))
    return at::view_as_complex(tensor);
  if (is_small_float(dtype) && tensor.scalar_type() == at::kByte) return tensor.view(dtype);
  return tensor;
}

class Store {
 public:
  explicit Store(TensorMap& data) : data_(data) {}

  void count(const at::Tensor& tensor) {
    if (tensor.defined() && tensor.has_storage())
      tensors_of_[tensor.storage().unsafeGetStorageImpl()].insert(tensor.unsafeGetTensorImpl());
  }

  Json entry(const at::Tensor& tensor, const std::string& base) {
    const auto number = static_cast<int64_t>(next_++);
    if (!tensor.defined()) return nullptr;
    const auto [it, inserted] = entry_of_.emplace(tensor.unsafeGetTensorImpl(), number);
    if (!inserted) return {{"same_as", it->second}};
    if (tensor.layout() != at::kStrided || tensor.is_quantized())
      throw Error("'" + base + "' is not a dense tensor; it has no form in which it could be kept or sent");
    Json json = {{"dtype", graph::dtype_name(tensor.scalar_type())},
                 {"sizes", tensor.sizes().vec()},
                 {"requires_grad", tensor.requires_grad()}};
    if (tensor.is_meta()) {
      json["meta"] = true;
      json["strides"] = tensor.strides().vec();
      return json;
    }
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    if (tensors_of_.at(storage).size() > 1) {
      std::string& key = key_of_storage_[storage];
      if (key.empty()) {
        key = unused("storage/" + base);
        data_.emplace(
            key, graph::to_host(
                     at::empty({0}, tensor.options().dtype(at::kByte).requires_grad(false)).set_(tensor.storage())));
      }
      json["storage"] = key;
      json["strides"] = tensor.strides().vec();
      json["offset"] = tensor.storage_offset();
      return json;
    }
    const std::string key = unused(base);
    data_.emplace(key, graph::to_host(as_file_type(tensor.detach())));
    json["data"] = key;
    // Without gaps, the strides are kept: a kernel may choose its path by them.
    if (!tensor.is_contiguous() && tensor.is_non_overlapping_and_dense()) json["strides"] = tensor.strides().vec();
    return json;
  }

 private:
  std::string unused(const std::string& base) const {
    std::string key = base;
    for (int i = 2; data_.contains(key); ++i) key = base + "#" + std::to_string(i);
    return key;
  }

  TensorMap& data_;
  int64_t next_ = 0;
  std::unordered_map<const c10::StorageImpl*, std::unordered_set<const c10::TensorImpl*>> tensors_of_;
  std::unordered_map<const c10::StorageImpl*, std::string> key_of_storage_;
  std::unordered_map<const c10::TensorImpl*, int64_t> entry_of_;
};

class Load {
 public:
  explicit Load(const TensorMap& data) : data_(data) {}

  at::Tensor tensor(const JsonPlace& place) {
    at::Tensor tensor;
    if (const bool defined = !place.is_null(); defined) {
      const auto same_as = place.find("same_as");
      if (same_as)
        place.expect_only({"same_as"});
      else
        tensor = read(place);
      if (same_as) tensor = tensors_.at(same_as->small(0, static_cast<int>(tensors_.size()) - 1));
      if (same_as && !tensor.defined()) same_as->fail("the number of a tensor that is there");
    }
    tensors_.push_back(tensor);
    return tensor;
  }

  void expect_all_used(const JsonPlace& about) const {
    for (const auto& [key, tensor] : data_)
      if (!used_.contains(key)) about.fail("an entry for the tensor `" + key + "`");
  }

 private:
  at::Tensor read(const JsonPlace& place) {
    place.expect_only({"dtype", "sizes", "requires_grad", "meta", "data", "storage", "strides", "offset"});
    const auto dtype = graph::dtype_from_name(place["dtype"].text());
    if (!dtype) place["dtype"].fail("an element type such as f32, bf16 or i64");
    const std::vector<int64_t> sizes = place["sizes"].integers(0);
    std::vector<int64_t> strides;
    const auto has_strides = place.find("strides");
    if (has_strides) strides = has_strides->integers(0);
    if (has_strides && strides.size() != sizes.size()) has_strides->fail("a stride for each size");
    at::Tensor tensor;
    if (place.find("meta")) {
      tensor = at::empty_strided(sizes, strides, at::TensorOptions(c10::kMeta).dtype(*dtype));
    } else if (place.find("storage")) {
      tensor = view_of_storage(place, *dtype, sizes, strides);
    } else {
      tensor = from_file_type(graph::from_host(data_at(place["data"])), *dtype);
      if (tensor.scalar_type() != *dtype || tensor.sizes() != c10::IntArrayRef(sizes))
        place.fail("the dtype and shape of the data, " + graph::describe(tensor));
      if (has_strides) tensor = at::empty_strided(sizes, strides, tensor.options()).copy_(tensor);
    }
    const bool requires_grad = place["requires_grad"].boolean();
    if (requires_grad && !at::isFloatingType(*dtype) && !at::isComplexType(*dtype))
      place["requires_grad"].fail("false: only floating-point numbers have gradients");
    return tensor.set_requires_grad(requires_grad);
  }

  at::Tensor view_of_storage(const JsonPlace& place, at::ScalarType dtype, const std::vector<int64_t>& sizes,
                             const std::vector<int64_t>& strides) {
    const JsonPlace key = place["storage"];
    at::Tensor& bytes = storages_[key.text()];
    if (!bytes.defined()) bytes = graph::from_host(data_at(key));
    const int64_t offset = place["offset"].integer(0);
    // One past the last element; as a double, which no sizes overflow.
    double end = static_cast<double>(offset) + 1;
    bool empty = false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      end += (static_cast<double>(sizes[i]) - 1) * static_cast<double>(strides.at(i));
      empty = empty || sizes[i] == 0;
    }
    if (strides.size() != sizes.size() ||
        (!empty && end * static_cast<double>(c10::elementSize(dtype)) > static_cast<double>(bytes.nbytes())))
      place.fail("a tensor within the " + std::to_string(bytes.nbytes()) + " bytes of its storage");
    return at::empty({0}, dtype).set_(bytes.storage(), offset, sizes, strides);
  }

  const HostTensor& data_at(const JsonPlace& key) {
    const auto it = data_.find(key.text());
    if (it == data_.end()) key.fail("the name of a tensor that came with it");
    used_.insert(it->first);
    return it->second;
  }

  const TensorMap& data_;
  std::vector<at::Tensor> tensors_;
  std::unordered_map<std::string, at::Tensor> storages_;
  std::set<std::string> used_;
};

}  // namespace

Json store_tensors(const std::vector<const graph::Graph*>& graphs, TensorMap& data) {
  const c10::AutoGradMode no_grad(false);
  Store store(data);
  for (const graph::Graph* graph : graphs)
    graph::for_each_attribute(*graph, [&](const graph::Attribute& attribute, int) { store.count(attribute.tensor); });
  Json about = Json::array();
  for (const graph::Graph* graph : graphs)
    graph::for_each_attribute(*graph, [&](const graph::Attribute& attribute, int depth) {
      about.push_back(store.entry(attribute.tensor, base_key(attribute, depth)));
    });
  return about;
}

void bind_stored_tensors(const JsonPlace& about, const TensorMap& data, const std::vector<graph::Graph*>& graphs) {
  const c10::AutoGradMode no_grad(false);
  size_t count = 0;
  for (const graph::Graph* graph : graphs)
    graph::for_each_attribute(*graph, [&](const graph::Attribute&, int) { ++count; });
  const std::vector<JsonPlace> entries = about.items(count);
  Load load(data);
  auto next = entries.begin();
  for (graph::Graph* graph : graphs)
    graph::for_each_attribute(*graph,
                              [&](graph::Attribute& attribute, int) { attribute.tensor = load.tensor(*next++); });
  load.expect_all_used(about);
}

}  // namespace plumbline::split
