// The operators of our own that occur in graphs: what ATen has none for. They live in the dispatcher like ATen's, so a
// graph with them prints, parses, is cut and is sent like any other.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/add.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include <cmath>
#include <cstdlib>
#include <mutex>

#include "runtime/error.h"

namespace plumbline::graph {
namespace {

// --- numbers that calls read from tensors, with the meaning of Python's operators (floor division rounds down, a
// remainder has the sign of the divisor) --------------------------------------------------------------------------

bool is_whole(const c10::Scalar& a, const c10::Scalar& b) { return !a.isFloatingPoint() && !b.isFloatingPoint(); }

template <class Operation>
c10::Scalar arithmetic(const c10::Scalar& a, const c10::Scalar& b, const Operation& operation) {
  if (is_whole(a, b)) return operation(a.toLong(), b.toLong());
  return operation(a.toDouble(), b.toDouble());
}

template <class Operation>
bool comparison(const c10::Scalar& a, const c10::Scalar& b, const Operation& operation) {
  if (is_whole(a, b)) return operation(a.toLong(), b.toLong());
  return operation(a.toDouble(), b.toDouble());
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) throw Error("integer division by zero");
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

c10::Scalar number_floordiv(const c10::Scalar& a, const c10::Scalar& b) {
  if (is_whole(a, b)) return floor_quotient(a.toLong(), b.toLong());
  return std::floor(a.toDouble() / b.toDouble());
}

c10::Scalar number_mod(const c10::Scalar& a, const c10::Scalar& b) {
  if (is_whole(a, b)) return a.toLong() - floor_quotient(a.toLong(), b.toLong()) * b.toLong();
  return a.toDouble() - std::floor(a.toDouble() / b.toDouble()) * b.toDouble();
}

c10::Scalar number_pow(const c10::Scalar& a, const c10::Scalar& b) {
  if (!is_whole(a, b) || b.toLong() < 0) return std::pow(a.toDouble(), b.toDouble());
  int64_t power = 1;
  for (int64_t i = 0; i < b.toLong(); ++i) power *= a.toLong();
  return power;
}

// --- the default random generator, for a micro-batch whose stages draw one after the other as the whole model would --

at::Tensor get_random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// --- what only DetachExecutor and a Program give a meaning to -------------------------------------------------

std::optional<at::Tensor> null_coalesce_accumulate(const std::optional<at::Tensor>& a,
                                                   const std::optional<at::Tensor>& b) {
  if (!a || !a->defined()) return b;
  if (!b || !b->defined()) return a;
  return at::add(*a, *b);
}

void refuse_split_graph(const c10::OperatorHandle& op, torch::jit::Stack*) {
  throw InputError(op.schema().name() +
                   ": the root graph of a pipe does not run by itself; give the Pipe to DetachExecutor (one device) or "
                   "to an Engine (a rank of a schedule)");
}

void refuse_branches(const c10::OperatorHandle& op, torch::jit::Stack*) {
  throw Error(op.schema().name() + " has no kernel: a Program runs one of its branches");
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plumbline, library) {
  library.def("number_add(Scalar a, Scalar b) -> Scalar", [](const c10::Scalar& a, const c10::Scalar& b) {
    return arithmetic(a, b, [](auto x, auto y) -> c10::Scalar { return x + y; });
  });
  library.def("number_sub(Scalar a, Scalar b) -> Scalar", [](const c10::Scalar& a, const c10::Scalar& b) {
    return arithmetic(a, b, [](auto x, auto y) -> c10::Scalar { return x - y; });
  });
  library.def("number_mul(Scalar a, Scalar b) -> Scalar", [](const c10::Scalar& a, const c10::Scalar& b) {
    return arithmetic(a, b, [](auto x, auto y) -> c10::Scalar { return x * y; });
  });
  library.def("number_truediv(Scalar a, Scalar b) -> Scalar",
              [](const c10::Scalar& a, const c10::Scalar& b) { return c10::Scalar(a.toDouble() / b.toDouble()); });
  library.def("number_floordiv(Scalar a, Scalar b) -> Scalar", &number_floordiv);
  library.def("number_mod(Scalar a, Scalar b) -> Scalar", &number_mod);
  library.def("number_pow(Scalar a, Scalar b) -> Scalar", &number_pow);
  library.def("number_neg(Scalar a) -> Scalar", [](const c10::Scalar& a) { return -a; });
  library.def("number_min(Scalar a, Scalar b) -> Scalar", [](const c10::Scalar& a, const c10::Scalar& b) {
    return arithmetic(a, b, [](auto x, auto y) -> c10::Scalar { return std::min(x, y); });
  });
  library.def("number_max(Scalar a, Scalar b) -> Scalar", [](const c10::Scalar& a, const c10::Scalar& b) {
    return arithmetic(a, b, [](auto x, auto y) -> c10::Scalar { return std::max(x, y); });
  });
  library.def("number_trunc(Scalar a) -> int", [](const c10::Scalar& a) {
    return a.isFloatingPoint() ? static_cast<int64_t>(std::trunc(a.toDouble())) : a.toLong();
  });
  library.def("number_floor(Scalar a) -> int", [](const c10::Scalar& a) {
    return a.isFloatingPoint() ? static_cast<int64_t>(std::floor(a.toDouble())) : a.toLong();
  });
  library.def("number_ceil(Scalar a) -> int", [](const c10::Scalar& a) {
    return a.isFloatingPoint() ? static_cast<int64_t>(std::ceil(a.toDouble())) : a.toLong();
  });
  library.def("number_float(Scalar a) -> float", [](const c10::Scalar& a) { return a.toDouble(); });
  library.def("number_sqrt(Scalar a) -> float", [](const c10::Scalar& a) { return std::sqrt(a.toDouble()); });
  library.def("number_ite(bool condition, Scalar a, Scalar b) -> Scalar",
              [](bool condition, const c10::Scalar& a, const c10::Scalar& b) { return condition ? a : b; });
  library.def("number_eq(Scalar a, Scalar b) -> bool", [](const c10::Scalar& a, const c10::Scalar& b) {
    return comparison(a, b, [](auto x, auto y) { return x == y; });
  });
  library.def("number_ne(Scalar a, Scalar b) -> bool", [](const c10::Scalar& a, const c10::Scalar& b) {
    return comparison(a, b, [](auto x, auto y) { return x != y; });
  });
  library.def("number_lt(Scalar a, Scalar b) -> bool", [](const c10::Scalar& a, const c10::Scalar& b) {
    return comparison(a, b, [](auto x, auto y) { return x < y; });
  });
  library.def("number_le(Scalar a, Scalar b) -> bool", [](const c10::Scalar& a, const c10::Scalar& b) {
    return comparison(a, b, [](auto x, auto y) { return x <= y; });
  });
  library.def("number_gt(Scalar a, Scalar b) -> bool", [](const c10::Scalar& a, const c10::Scalar& b) {
    return comparison(a, b, [](auto x, auto y) { return x > y; });
  });
  library.def("number_ge(Scalar a, Scalar b) -> bool", [](const c10::Scalar& a, const c10::Scalar& b) {
    return comparison(a, b, [](auto x, auto y) { return x >= y; });
  });
  library.def("number_and(bool a, bool b) -> bool", [](bool a, bool b) { return a && b; });
  library.def("number_or(bool a, bool b) -> bool", [](bool a, bool b) { return a || b; });
  library.def("number_not(bool a) -> bool", [](bool a) { return !a; });

  library.def("get_random_state() -> Tensor", &get_random_state);
  library.def("set_random_state(Tensor state) -> ()", &set_random_state);

  // Node::branches holds the graphs for true and false; operands are their inputs.
  library.def("cond(Tensor pred, Tensor[] operands) -> Tensor[]",
              torch::CppFunction::makeFromBoxedFunction<&refuse_branches>());

  // The root graph of a pipe (reference/detach/root_graph.h).
  library.def("call_stage(int stage, Tensor[] inputs) -> Tensor[]",
              torch::CppFunction::makeFromBoxedFunction<&refuse_split_graph>());
  library.def("stage_backward(Tensor[] stage_output, Tensor?[] output_grads, Tensor[] input_values) -> Tensor[]",
              torch::CppFunction::makeFromBoxedFunction<&refuse_split_graph>());
  library.def("null_coalesce_accumulate(Tensor? lhs, Tensor? rhs) -> Tensor?", &null_coalesce_accumulate);
}

}  // namespace plumbline::graph
