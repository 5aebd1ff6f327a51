// The operators of our own that occur in graphs: what ATen has none for. They live in the dispatcher like ATen's, so a
// graph with them prints, parses, is cut and is sent like any other.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/add.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <string>

#include "runtime/error.h"

namespace plumbline::graph {
namespace {

// --- numbers that calls read from tensors, with the meaning of Python's operators (floor division rounds down, a
// remainder has the sign of the divisor) --------------------------------------------------------------------------
// But whole numbers have 64 bits, and a float divided by zero is infinite or NaN.

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

[[noreturn]] void refuse_large(const char* operation) {
  throw Error("the result of " + std::string(operation) + " does not fit into 64 bits");
}

/// `overflows` stores its whole result, and returns whether that does not fit.
template <class Overflows, class OfFloats>
c10::Scalar checked(const char* name, const c10::Scalar& a, const c10::Scalar& b, const Overflows& overflows,
                    const OfFloats& of_floats) {
  if (!is_whole(a, b)) return of_floats(a.toDouble(), b.toDouble());
  int64_t result = 0;
  if (overflows(a.toLong(), b.toLong(), &result)) refuse_large(name);
  return result;
}

c10::Scalar number_add(const c10::Scalar& a, const c10::Scalar& b) {
  return checked(
      "plumbline::number_add", a, b, [](auto x, auto y, auto* sum) { return __builtin_add_overflow(x, y, sum); },
      std::plus<double>());
}

c10::Scalar number_sub(const c10::Scalar& a, const c10::Scalar& b) {
  return checked(
      "plumbline::number_sub", a, b, [](auto x, auto y, auto* less) { return __builtin_sub_overflow(x, y, less); },
      std::minus<double>());
}

c10::Scalar number_mul(const c10::Scalar& a, const c10::Scalar& b) {
  return checked(
      "plumbline::number_mul", a, b,
      [](auto x, auto y, auto* product) { return __builtin_mul_overflow(x, y, product); }, std::multiplies<double>());
}

c10::Scalar number_neg(const c10::Scalar& a) {
  if (!a.isFloatingPoint() && a.toLong() == std::numeric_limits<int64_t>::min()) refuse_large("plumbline::number_neg");
  return -a;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) throw Error("integer division by zero");
  if (b == -1 && a == std::numeric_limits<int64_t>::min()) refuse_large("plumbline::number_floordiv");
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == 0) throw Error("integer division by zero");
  if (b == -1) return 0;  // the processor has no quotient for the smallest number
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Follows the exact remainder: a / b may round up to the next whole number.
double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;  // whole but for rounding
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  const double below = std::floor(quotient);
  return std::copysign(quotient - below > 0.5 ? below + 1 : below, a / b);
}

double floor_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(rest, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

c10::Scalar number_floordiv(const c10::Scalar& a, const c10::Scalar& b) {
  return arithmetic(a, b, [](auto x, auto y) -> c10::Scalar { return floor_quotient(x, y); });
}

c10::Scalar number_mod(const c10::Scalar& a, const c10::Scalar& b) {
  return arithmetic(a, b, [](auto x, auto y) -> c10::Scalar { return floor_remainder(x, y); });
}

/// By squaring: `exponent`, which is not negative, may be any.
int64_t whole_power(int64_t base, int64_t exponent) {
  int64_t power = 1;
  while (true) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(power, base, &power)) refuse_large("plumbline::number_pow");
    exponent /= 2;
    if (exponent == 0) return power;
    if (__builtin_mul_overflow(base, base, &base)) refuse_large("plumbline::number_pow");
  }
}

c10::Scalar number_pow(const c10::Scalar& a, const c10::Scalar& b) {
  if (!is_whole(a, b) || b.toLong() < 0) return std::pow(a.toDouble(), b.toDouble());
  return whole_power(a.toLong(), b.toLong());
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
  library.def("number_add(Scalar a, Scalar b) -> Scalar", &number_add);
  library.def("number_sub(Scalar a, Scalar b) -> Scalar", &number_sub);
  library.def("number_mul(Scalar a, Scalar b) -> Scalar", &number_mul);
  library.def("number_truediv(Scalar a, Scalar b) -> Scalar",
              [](const c10::Scalar& a, const c10::Scalar& b) { return c10::Scalar(a.toDouble() / b.toDouble()); });
  library.def("number_floordiv(Scalar a, Scalar b) -> Scalar", &number_floordiv);
  library.def("number_mod(Scalar a, Scalar b) -> Scalar", &number_mod);
  library.def("number_pow(Scalar a, Scalar b) -> Scalar", &number_pow);
  library.def("number_neg(Scalar a) -> Scalar", &number_neg);
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
