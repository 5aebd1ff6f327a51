#include "conformance/program/batch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>

#include "runtime/error.h"
#include "runtime/graph/host_tensors.h"
#include "runtime/microbatch/random_seed.h"
#include "runtime/text/join.h"

namespace plumbline::program {
namespace {

const graph::Value& value_of(const capture::ExportedProgram& program, size_t input) {
  return program.graph.values[program.graph.inputs[input].value];
}

std::string taken(const graph::Value& value) { return graph::describe(value.dtype, value.sizes); }

/// The number of micro-batches of the program's size that `tensor` holds; 0 if it is not a whole number.
int64_t held(const at::Tensor& tensor, const graph::Value& value) {
  if (static_cast<size_t>(tensor.dim()) != value.sizes.size() || value.sizes.empty() || value.sizes[0] == 0) return 0;
  for (int64_t d = 1; d < tensor.dim(); ++d)
    if (tensor.size(d) != value.sizes[d]) return 0;
  return tensor.size(0) % value.sizes[0] == 0 ? tensor.size(0) / value.sizes[0] : 0;
}

/// The target of one micro-batch: shaped like the output, or class indices without the output's last dimension.
graph::Value target_value(const capture::ExportedProgram& program, const ProgramLoss& loss) {
  graph::Value value = program.graph.values[program.graph.outputs[loss.output]];
  if (value.sizes.empty())
    throw InputError("--loss " + to_string(loss) + ": output " + std::to_string(loss.output) +
                     " is a scalar, which cannot be compared with a target; output:" + std::to_string(loss.output) +
                     " takes it as the loss");
  if (loss.spec.kind == reference::LossKind::CrossEntropy) {
    value.dtype = at::kLong;
    value.sizes.pop_back();
  }
  return value;
}

void check_target(const capture::ExportedProgram& program, const ProgramLoss& loss, const ProgramBatch& batch) {
  const graph::Value one = target_value(program, loss);
  std::vector<int64_t> sizes = one.sizes;
  if (!sizes.empty()) sizes[0] *= batch.microbatches;
  if (batch.target.scalar_type() == one.dtype && batch.target.sizes() == sizes) return;
  throw InputError("the target '" + loss.target + "' is " + graph::describe(batch.target) + "; --loss " +
                   to_string(loss) + " on " + std::to_string(batch.microbatches) + " micro-batches takes " +
                   graph::describe(one.dtype, sizes));
}

class FileBatch {
 public:
  FileBatch(const capture::ExportedProgram& program, const ProgramLoss& loss, const ProgramOptions& options)
      : program_(program), loss_(loss), path_(options.inputs.string()), tensors_(read_tensor_file(options.inputs)) {
    batch_.microbatches = options.microbatches;
  }

  ProgramBatch read() {
    for (const graph::GraphInput& input : program_.graph.inputs) {
      names_.push_back(input.name);
      const auto it = tensors_.find(input.name);
      if (it == tensors_.end())
        throw InputError(path_ + ": no tensor '" + input.name + "', which the program takes as " +
                         taken(program_.graph.values[input.value]));
      batch_.inputs.push_back(graph::from_host(it->second));
    }
    refuse_others();
    count_microbatches();
    for (size_t i = 0; i < names_.size(); ++i) batch_.chunks.push_back(chunk_of(i));
    read_target();
    return std::move(batch_);
  }

 private:
  /// Refuses a missing target, then a tensor that is neither input nor target.
  void refuse_others() const {
    if (!loss_.target.empty() && !tensors_.contains(loss_.target)) {
      std::vector<std::string> held;
      for (const auto& [name, tensor] : tensors_) held.push_back(name);
      throw InputError(path_ + ": no tensor '" + loss_.target + "', which --loss " + to_string(loss_) +
                       " needs; it holds " + join(held));
    }
    for (const auto& [name, tensor] : tensors_)
      if (name != loss_.target && std::find(names_.begin(), names_.end(), name) == names_.end())
        throw InputError(path_ + ": '" + name + "' is not an input of the program, which takes " + join(names_) +
                         (loss_.target.empty() ? "; give --loss if it is a target" : ""));
  }

  /// The requested number, or the largest that an input holds: the other inputs may be replicated.
  void count_microbatches() {
    if (batch_.microbatches > 0) return;
    batch_.microbatches = 1;
    for (size_t i = 0; i < names_.size(); ++i)
      batch_.microbatches =
          std::max(batch_.microbatches, static_cast<int>(held(batch_.inputs[i], value_of(program_, i))));
  }

  microbatch::ChunkSpec chunk_of(size_t i) const {
    const graph::Value& value = value_of(program_, i);
    const at::Tensor& tensor = batch_.inputs[i];
    microbatch::ChunkSpec spec;
    if (tensor.scalar_type() == value.dtype) {
      if (held(tensor, value) == batch_.microbatches && batch_.microbatches > 1) return spec;
      spec.replicate = true;
      if (tensor.sizes() == value.sizes) return spec;
    }
    std::vector<int64_t> whole = value.sizes;
    if (!whole.empty()) whole[0] *= batch_.microbatches;
    if (batch_.microbatches == 1)
      throw InputError(path_ + ": input '" + names_[i] + "' is " + graph::describe(tensor) +
                       "; the program is specialised to " + taken(value));
    throw InputError(path_ + ": input '" + names_[i] + "' is " + graph::describe(tensor) +
                     "; the program is specialised to " + taken(value) + ", so " + std::to_string(batch_.microbatches) +
                     " micro-batches take " + graph::describe(value.dtype, whole) + " (divided) or " + taken(value) +
                     " (the same for each)");
  }

  void read_target() {
    if (loss_.target.empty()) return;
    batch_.target = graph::from_host(tensors_.at(loss_.target));
    check_target(program_, loss_, batch_);
  }

  const capture::ExportedProgram& program_;
  const ProgramLoss& loss_;
  std::string path_;
  TensorMap tensors_;
  std::vector<std::string> names_;
  ProgramBatch batch_;
};

at::Tensor varied(const at::Tensor& sample, at::Generator& generator) {
  if (sample.is_floating_point())
    return at::add(
        sample, at::randn(sample.sizes(), generator, at::TensorOptions().dtype(at::kFloat)).to(sample.scalar_type()));
  if (sample.scalar_type() == at::kBool || sample.numel() < 2) return sample;
  return sample.reshape(-1).index_select(0, at::randperm(sample.numel(), generator)).reshape(sample.sizes());
}

at::Tensor sample_target(const capture::ExportedProgram& program, const ProgramLoss& loss, int microbatches,
                         at::Generator& generator) {
  const graph::Value one = target_value(program, loss);
  std::vector<int64_t> sizes = one.sizes;
  if (!sizes.empty()) sizes[0] *= microbatches;
  if (loss.spec.kind == reference::LossKind::Mse) return at::randn(sizes, generator).to(one.dtype);
  const int64_t classes = program.graph.values[program.graph.outputs[loss.output]].sizes.back();
  return at::randint(0, classes, sizes, generator, at::TensorOptions().dtype(at::kLong));
}

ProgramBatch sample_batch(const capture::ExportedProgram& program, const ProgramLoss& loss,
                          const ProgramOptions& options, int stages) {
  if (program.sample_inputs.size() != program.graph.inputs.size())
    throw InputError(options.program.string() + ": the archive's sample inputs cannot be read" +
                     (program.sample_inputs_error.empty() ? "" : " (" + program.sample_inputs_error + ")") +
                     "; give --inputs F.safetensors");
  ProgramBatch batch;
  batch.microbatches = options.microbatches > 0 ? options.microbatches : stages;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>();
  for (size_t i = 0; i < program.sample_inputs.size(); ++i) {
    const at::Tensor& sample = program.sample_inputs[i];
    microbatch::ChunkSpec spec;
    spec.replicate = sample.dim() == 0;
    batch.chunks.push_back(spec);
    if (spec.replicate) {
      batch.inputs.push_back(sample);
      continue;
    }
    std::vector<at::Tensor> parts;
    for (int m = 0; m < batch.microbatches; ++m) {
      generator.set_current_seed(microbatch::stage_random_seed(options.seed, 0, static_cast<int>(i), m));
      parts.push_back(varied(sample.detach(), generator));
    }
    batch.inputs.push_back(at::cat(parts));
  }
  generator.set_current_seed(options.seed);
  for (size_t i = 0; i < program.graph.inputs.size(); ++i)
    if (program.graph.inputs[i].name == loss.target) batch.target = batch.inputs[i];
  if (!loss.target.empty() && !batch.target.defined())
    batch.target = sample_target(program, loss, batch.microbatches, generator);
  if (batch.target.defined()) check_target(program, loss, batch);
  return batch;
}

}  // namespace

ProgramBatch program_batch(const capture::ExportedProgram& program, const ProgramLoss& loss,
                           const ProgramOptions& options, int stages) {
  if (options.inputs.empty()) return sample_batch(program, loss, options, stages);
  return FileBatch(program, loss, options).read();
}

}  // namespace plumbline::program
