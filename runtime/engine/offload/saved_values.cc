#include "runtime/engine/offload/saved_values.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include "runtime/error.h"

namespace plumbline::engine {
namespace {

thread_local SavedValues* recording = nullptr;

class Hooks : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hooks(SavedValues& values) : values_(&values) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    value_ = std::make_shared<SavedValue>(tensor.tensor_data(), tensor.unsafeGetTensorImpl()->version_counter());
    values_->add(value_);
  }
  at::Tensor call_unpack_hook() override { return value_->get(); }

 private:
  SavedValues* values_;  // only used while recording
  std::shared_ptr<SavedValue> value_;
};

/// Autograd asks its engine for the hooks of each tensor that it saves. This is the only place where C++ can give them.
class EngineWithHooks : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return recording ? std::make_unique<Hooks>(*recording) : nullptr;
  }
};

torch::autograd::Engine& engine_with_hooks() {
  static auto* const engine = new EngineWithHooks;  // as LibTorch's own, it is never destroyed
  return *engine;
}

/// Before main(): no backward may be under way.
const bool installed = [] {
  torch::autograd::set_default_engine_stub(&engine_with_hooks);
  return true;
}();

}  // namespace

at::Tensor SavedValue::get() const {
  if (block_ >= 0) throw Error("activations are used that were offloaded and not reloaded");
  if (version_.current_version() != saved_version_)
    throw Error("a tensor that the backward needs was changed in place after the forward saved it");
  return tensor_;
}

const c10::StorageImpl* SavedValue::memory() const {
  return block_ < 0 && tensor_.has_storage() ? tensor_.storage().unsafeGetStorageImpl() : nullptr;
}

void SavedValue::take_away(int block) {
  block_ = block;
  tensor_.unsafeGetTensorImpl()->set_storage_keep_dtype(
      c10::Storage(c10::Storage::use_byte_size_t(), 0, at::DataPtr(nullptr, tensor_.device()), nullptr, false));
}

void SavedValue::give_back(c10::Storage memory) {
  block_ = -1;
  tensor_.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(memory));
}

SavedValues::Recording::Recording(SavedValues* values) {
  PLUMBLINE_CHECK(installed && recording == nullptr, "saved values are recorded twice");
  recording = values;
}

SavedValues::Recording::~Recording() { recording = nullptr; }

std::vector<std::shared_ptr<SavedValue>> SavedValues::alive() {
  std::vector<std::shared_ptr<SavedValue>> found;
  for (const std::weak_ptr<SavedValue>& value : values_)
    if (std::shared_ptr<SavedValue> kept = value.lock()) found.push_back(std::move(kept));
  return found;
}

}  // namespace plumbline::engine
