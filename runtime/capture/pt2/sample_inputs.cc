#include "runtime/capture/pt2/sample_inputs.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/import_read.h>

#include <sstream>

#include "runtime/error.h"
#include "runtime/graph/error_text.h"

namespace plumbline::capture::pt2 {
namespace {

constexpr const char* kEntry = "data/sample_inputs/model.pt";

/// As torch::jit::pickle_load(), but all tensors come to the CPU, wherever the exporter had them.
c10::IValue unpickled(const std::string& bytes) {
  std::istringstream stream(bytes);
  caffe2::serialize::PyTorchStreamReader reader(&stream);
  return torch::jit::readArchiveAndTensors("data", /*pickle_prefix=*/"", /*tensor_prefix=*/"",
                                           /*type_resolver=*/std::nullopt, /*obj_loader=*/std::nullopt,
                                           at::Device(at::kCPU), reader);
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
    flatten(in_spec, unpickled({begin, begin + count}), sample.leaves);
  } catch (const std::exception& error) {
    sample.leaves.clear();
    sample.error = std::string("'") + kEntry + "' cannot be read: " + graph::error_line(error);
  }
  return sample;
}

}  // namespace plumbline::capture::pt2
