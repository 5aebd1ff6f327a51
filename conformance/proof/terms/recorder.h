// Recorder: gives every value that a thread computes its term. It observes each operator below autograd
// (runtime/capture/interpose.h), so the forward, the backward that autograd derives, accumulation and the optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/proof/terms/memory.h"
#include "conformance/proof/terms/term.h"
#include "runtime/capture/interpose.h"

namespace plumbline::proof {

/// Where in a run an operator was executed.
struct Place {
  int rank = -1, stage = -1, microbatch = -1;  ///< -1: does not apply
  std::string action = {};                     ///< "F", "B", "I", "W", or empty: between actions

  bool operator==(const Place&) const = default;
};

/// "stage 1, micro-batch 3 (B)"; empty if nothing applies.
std::string to_string(const Place& place);

/// What one thread, or a whole run, has executed.
struct Log {
  std::map<TermId, Place> first;       ///< where each term was computed first
  std::map<TermId, int> times;         ///< how often, inside of actions
  std::set<std::string> operators;     ///< the names of the operators that computed
  std::set<std::string> read_numbers;  ///< operators that gave numbers, not tensors, to the program
  int64_t executed = 0, unseen_writes = 0;
  int64_t zeros = 0;  ///< additions of zeros that were left out (normalisation "zeros")

  /// Actions that did what another action is for, one sentence each.
  std::vector<std::string> misplaced;

  void merge(const Log& other);
};

class Recorder : public capture::Interposer {
 public:
  /// `terms` must outlive the recorder.
  Recorder(Terms& terms, int rank) : terms_(terms), memory_(terms) { place_.rank = rank; }

  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;

  /// Makes the tensor's present content a leaf: kind "parameter", "buffer", "input" or "target".
  void name_leaf(const at::Tensor& tensor, const std::string& kind, const std::string& name);
  TermId term_of(const at::Tensor& tensor) { return proof::term_of(terms_, memory_.read(tensor)); }

  /// Terms that are computed from here on are computed at this stage and micro-batch, in this action.
  void enter(int stage, int microbatch, std::string action);
  void leave() { place_.action.clear(); }

  /// The action does what another one is for.
  void note_misplaced(const std::string& what) { log_.misplaced.push_back(to_string(place_) + ": " + what); }

  Memory& memory() { return memory_; }
  Log take_log();

 private:
  struct Described;
  Described describe(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);
  void leave_out_zeros(const std::vector<c10::IValue>& arguments, Described& call);
  TermId operand(const at::Tensor& tensor);
  Value result(const Described& call, const at::Tensor& tensor, size_t index);
  void define_results(const Described& call, const std::vector<at::Tensor>& results);

  Terms& terms_;
  Memory memory_;
  Place place_;
  Log log_;
};

}  // namespace plumbline::proof
