#include "runtime/capture/pt2/sample_inputs.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>

#include "runtime/error.h"
#include "runtime/graph/error_text.h"

namespace plumbline::capture::pt2 {
namespace {

constexpr const char* kEntry = "data/sample_inputs/model.pt";

/// The bytes of each record that was read, by their address.
using RecordSizes = std::map<const void*, size_t>;

/// As torch::jit::pickle_load(), but all tensors come to the CPU, wherever the exporter had them. Their storages have
/// the sizes that the pickle claims; `records` gets the true ones.
c10::IValue unpickled(const std::string& bytes, RecordSizes& records) {
  std::istringstream stream(bytes);
  caffe2::serialize::PyTorchStreamReader reader(&stream);
  at::DataPtr pickle;
  size_t count = 0, taken = 0;
  std::tie(pickle, count) = reader.getRecord("data.pkl");
  const auto next = [&](char* to, size_t wanted) {
    const size_t n = std::min(wanted, count - taken);
    std::memcpy(to, static_cast<const char*>(pickle.get()) + taken, n);
    taken += n;
    return n;
  };
  const auto record = [&](const std::string& name) {
    std::tuple<at::DataPtr, size_t> read = reader.getRecord("data/" + name);
    records[std::get<0>(read).get()] = std::get<1>(read);
    return std::get<0>(std::move(read));
  };
  torch::jit::Unpickler unpickler(next, torch::jit::TypeResolver(), torch::jit::ObjLoader(), record,
                                  at::Device(at::kCPU));
  unpickler.set_version(reader.version());
  return unpickler.parse_ivalue();
}

void check_memory(const at::Tensor& tensor, const RecordSizes& records) {
  if (tensor.layout() != c10::kStrided) throw Error("they hold a tensor that is not strided");
  const c10::Storage& storage = tensor.storage();
  const auto record = records.find(storage.data());
  const size_t present = record == records.end() ? 0 : record->second;
  const at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  const bool possible = are_sizes_of_a_tensor(sizes) && tensor.storage_offset() >= 0 &&
                        std::ranges::none_of(strides, [](int64_t stride) { return stride < 0; });
  std::optional<int64_t> needed;
  if (possible) needed = extent(sizes, strides, tensor.storage_offset(), tensor.element_size());
  if (!needed || static_cast<size_t>(*needed) > present || storage.nbytes() > present)
    throw Error("they hold a tensor that reaches beyond its record");
}

void flatten(const TreeSpec& spec, const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  if (spec.is_leaf()) {
    leaves.push_back(value);
    return;
  }
  if (value.isGenericDict() && spec.keys.size() == spec.children.size()) {
    const auto dict = value.toGenericDict();
    if (dict.size() != spec.keys.size()) throw Error("a dict has other keys than the program");
    for (size_t i = 0; i < spec.keys.size(); ++i) flatten(spec.children[i], dict.at(spec.keys[i]), leaves);
    return;
  }
  std::vector<c10::IValue> items;
  if (value.isTuple()) {
    items = value.toTupleRef().elements().vec();
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) items.push_back(item);
  } else {
    throw Error("they hold a " + value.tagKind() + " where the program has a " + spec.type);
  }
  if (items.size() != spec.children.size())
    throw Error("they hold " + std::to_string(items.size()) + " items where the program has " +
                std::to_string(spec.children.size()));
  for (size_t i = 0; i < items.size(); ++i) flatten(spec.children[i], items[i], leaves);
}

}  // namespace

SampleInputs read_sample_inputs(Archive& archive, const TreeSpec& in_spec) {
  SampleInputs sample;
  if (!archive.has(kEntry)) {
    sample.error = std::string("the archive has no entry '") + kEntry + "'";
    return sample;
  }
  const auto [bytes, count] = archive.read(kEntry, "the sample inputs");
  const auto* begin = static_cast<const char*>(bytes.get());
  try {
    RecordSizes records;
    flatten(in_spec, unpickled({begin, begin + count}, records), sample.leaves);
    for (const c10::IValue& leaf : sample.leaves)
      if (leaf.isTensor() && leaf.toTensor().defined()) check_memory(leaf.toTensor(), records);
  } catch (const std::exception& error) {
    sample.leaves.clear();
    sample.error = std::string("'") + kEntry + "' cannot be read: " + graph::error_line(error);
  }
  return sample;
}

}  // namespace plumbline::capture::pt2
