#include "reference/result_key.h"

#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "runtime/error.h"
#include "runtime/text/number.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"

namespace plumbline::reference {
namespace {

constexpr std::array<std::string_view, kResultKinds> kind_names = {
    "forward",     "output", "loss",      "backward", "partial", "input-grad",     "hook-calls",
    "accumulated", "grad",   "grad-norm", "buffer",   "param",   "optimizer-state"};

std::string number_or_dash(int number) { return number < 0 ? "-" : std::to_string(number); }

/// Reads a dash as -1; returns false without changing `number` for anything except a dash or digits.
bool read_number_or_dash(std::string_view text, int& number) {
  if (text == "-") {
    number = -1;
    return true;
  }
  const std::optional<int> read = parse_number<int>(text);
  number = read.value_or(number);
  return read.has_value();
}

/// The order of the phases of a step; within a phase, micro-batches and stages decide.
int phase_of(ResultKind kind) {
  switch (kind) {
    case ResultKind::Forward:
    case ResultKind::Output:
      return 0;
    case ResultKind::Loss:
      return 1;
    case ResultKind::Backward:
    case ResultKind::Partial:
    case ResultKind::InputGrad:
    case ResultKind::HookCalls:
    case ResultKind::Accumulated:
      return 2;
    case ResultKind::Grad:
      return 3;
    case ResultKind::GradNorm:
      return 4;
    case ResultKind::Buffer:
      return 5;
    case ResultKind::Param:
      return 6;
    case ResultKind::OptimizerState:
      return 7;
  }
  return 8;
}

auto causal_rank(const ResultKey& key) {
  const int phase = phase_of(key.kind);
  const auto last_if_unset = [](int number) { return number < 0 ? std::numeric_limits<int>::max() : number; };
  const int stage = phase == 2 && key.stage >= 0 ? -key.stage : last_if_unset(key.stage);
  return std::tuple(key.step, phase, last_if_unset(key.microbatch), stage, static_cast<int>(key.kind),
                    std::string_view(key.name));
}

}  // namespace

std::string_view kind_name(ResultKind kind) { return kind_names[static_cast<size_t>(kind)]; }

std::string to_string(const ResultKey& key) {
  return std::to_string(key.step) + "/" + std::string(kind_name(key.kind)) + "/" + number_or_dash(key.stage) + "/" +
         number_or_dash(key.microbatch) + "/" + key.name;
}

ResultKey parse_result_key(const std::string& text) {
  const auto refuse = [&]() -> InputError {
    return InputError("result key `" + shortened(one_line(text)) +
                      "` is not <step>/<kind>/<stage>/<microbatch>/<name> (kinds: forward, output, loss, backward, "
                      "partial, input-grad, hook-calls, accumulated, grad, grad-norm, buffer, param, optimizer-state)");
  };
  std::array<std::string_view, 4> parts;
  std::string_view rest = text;
  for (std::string_view& part : parts) {
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) throw refuse();
    part = rest.substr(0, slash);
    rest.remove_prefix(slash + 1);
  }
  ResultKey key;
  key.name = rest;
  size_t kind = 0;
  while (kind < kind_names.size() && kind_names[kind] != parts[1]) ++kind;
  if (kind == kind_names.size() || key.name.empty() || !read_number_or_dash(parts[0], key.step) ||
      !read_number_or_dash(parts[2], key.stage) || !read_number_or_dash(parts[3], key.microbatch))
    throw refuse();
  key.kind = static_cast<ResultKind>(kind);
  if (key.step < 0 || to_string(key) != text) throw refuse();  // one spelling per key: no "01", no "-2"
  return key;
}

bool causal_less(const ResultKey& a, const ResultKey& b) { return causal_rank(a) < causal_rank(b); }

}  // namespace plumbline::reference
