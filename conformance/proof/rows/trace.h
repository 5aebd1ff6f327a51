// A trace: the operators of one execution in their order, with the memory that they read and wrote, as plain data. Two
// executions of one program, over a whole batch and over a micro-batch, are compared call by call (row_types.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "conformance/proof/terms/layout.h"
#include "conformance/proof/terms/normalisations.h"
#include "runtime/capture/call.h"
#include "runtime/capture/interpose.h"

namespace torch::nn {
class Module;
}

namespace plumbline::proof {

/// A tensor in memory. An undefined tensor has no storage.
struct TracedTensor {
  int storage = -1;  ///< number of the storage in its trace
  Layout layout;
  int64_t storage_elements = 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  /// The value of a tensor of one element.
  std::optional<double> number = {};
  bool literal = false;  ///< a number that the program passed where a tensor is expected
  /// A hash of the content, if no operator made it and it is no leaf.
  std::string content = {};
};

struct TracedCall {
  const c10::FunctionSchema* schema = nullptr;
  std::string op;                                       ///< functional_name()
  std::vector<c10::IValue> arguments = {};              ///< tensors are None
  std::vector<std::vector<TracedTensor>> tensors = {};  ///< by argument
  std::vector<TracedTensor> results = {};               ///< without numbers
  Kind kind = Kind::Computes;
  std::optional<double> fill = {};  ///< the number of an operator that fills
  bool gives_numbers = false;       ///< a result is no tensor
  bool draws = false;               ///< random numbers
  std::string module = {};          ///< whose forward it belongs to: "layers.2", empty: outside of all
  bool backward = false;
};

/// A point between operators at which a tensor gets or has a meaning.
struct TracedMark {
  enum class Kind {
    Replicated,  ///< a parameter, a buffer or a replicated input: equal in all executions
    Rows,        ///< an input, whose dimension `dim` carries the rows from `first_row` on
    Loss,        ///< a loss is complete
    Seed,        ///< the gradient from which the backward of the loss of this name begins
    Gradient,    ///< of a parameter; may be undefined
  };
  Kind kind;
  std::string name;
  TracedTensor tensor;
  int dim = 0, first_row = 0;
};

using TracedEvent = std::variant<TracedCall, TracedMark>;

struct Trace {
  std::vector<TracedEvent> events;
};

/// Records while it is installed as interposer and as observer of modules. Keeps all memory that it saw alive.
class Tracer : public capture::Interposer, public capture::ModuleObserver {
 public:
  /// `root` names the modules, and must outlive the tracer.
  explicit Tracer(const torch::nn::Module& root);

  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override;
  void enter(const torch::nn::Module& module) override;
  void leave(const torch::nn::Module& module) override;

  void mark(TracedMark::Kind kind, const std::string& name, const at::Tensor& tensor, int dim = 0, int first_row = 0);

  const Trace& trace() const { return trace_; }

 private:
  TracedTensor traced(const at::Tensor& tensor, bool is_read);
  void module_changes();
  std::string module_now() const;

  Trace trace_;
  std::map<const c10::StorageImpl*, int> numbers_;
  std::vector<c10::Storage> kept_;
  std::vector<bool> has_value_;  ///< by storage: whether an operator or a leaf gave it content
  std::map<const torch::nn::Module*, std::string> names_;
  std::vector<std::string> inside_;       ///< the modules entered
  std::map<uint64_t, std::string> from_;  ///< by autograd's sequence number: the module from there on
};

}  // namespace plumbline::proof
