// Recorder: gives every value that a thread computes its term. It observes each operator below autograd
// (runtime/capture/interpose.h), so the forward, the backward that autograd derives, accumulation and the optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/proof/terms/memory.h"
#include "conformance/proof/terms/occurrences.h"
#include "conformance/proof/terms/term.h"
#include "runtime/capture/interpose.h"

namespace plumbline::proof {

/// What one thread, or a whole run, has executed.
struct Log {
  std::set<std::string> operators;     ///< the names of the operators that computed
  std::set<std::string> read_numbers;  ///< operators that gave numbers, not tensors, to the program
  int64_t executed = 0, unseen_writes = 0;
  int64_t zeros = 0;  ///< additions of zeros that were left out (normalisation "zeros")

  /// Actions that did what another action is for, one sentence each.
  std::vector<std::string> misplaced;

  void merge(const Log& other);
};

class ShapeRun;

class Recorder : public capture::Interposer {
 public:
  /// Calls on hollow tensors are executed by `shapes`, others by their kernels. All arguments must outlive the
  /// recorder.
  Recorder(Terms& terms, Occurrences& occurrences, int rank, ShapeRun* shapes = nullptr);

  ~Recorder() override;

  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  /// Makes the tensor's present content a leaf: kind "parameter", "buffer", "input" or "target".
  void name_leaf(const at::Tensor& tensor, const std::string& kind, const std::string& name);
  TermId term_of(const at::Tensor& tensor) { return memory_.term_of(tensor); }

  /// Terms that are computed from here on are computed at this stage and micro-batch, in this action.
  void enter(int stage, int microbatch, char action);
  void leave() { place_.action = 0; }

  /// A term that an operator computed, in an action or between actions (0).
  struct Computed {
    TermId id;
    char action;
  };
  /// Lists the terms that are computed from here on, in order; null: not any longer.
  void list_to(std::vector<Computed>* computed) { computed_ = computed; }

  /// Notes that the present action did what another one is for.
  void note_misplaced(const std::string& what) { log_.misplaced.push_back(to_string(place_) + ": " + what); }

  Memory& memory() { return memory_; }
  Terms& terms() { return terms_; }
  Occurrences& occurrences() { return occurrences_; }
  /// Whether calls on hollow tensors are executed.
  bool on_shapes() const { return shapes_ != nullptr; }
  Log take_log();

 private:
  struct Form;
  struct Described;
  using Arguments = std::span<const c10::IValue>;
  static Form form_of(const c10::OperatorHandle& op, Arguments arguments);
  const Form& known_form(const c10::OperatorHandle& op, Arguments arguments);
  Described describe(const Form& form, Arguments arguments);
  bool leave_out_zeros(Arguments arguments, Described& call);
  TermId operand(const at::Tensor& tensor);
  Terms::Head head(const Described& call, const at::Tensor& tensor, size_t index);
  Value result(const Described& call, const at::Tensor& tensor, size_t index);
  void define_results(const Described& call, c10::ArrayRef<at::Tensor> results);

  Terms& terms_;
  Occurrences& occurrences_;
  ShapeRun* shapes_;
  Memory memory_;
  Place place_;
  std::vector<Computed>* computed_ = nullptr;
  Log log_;
  std::string key_;                                               ///< of the present call
  std::unordered_map<std::string, std::unique_ptr<Form>> forms_;  ///< by call key
};

}  // namespace plumbline::proof
