#include "conformance/export/expected.h"

#include <ATen/ops/add.h>
#include <torch/version.h>

#include <array>

#include "conformance/export/json_layout.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/stage_orders.h"
#include "reference/host_results.h"
#include "runtime/io/write_file.h"

namespace plumbline::conformance {
namespace {

TensorMap bounded(const reference::Case& c, uint64_t seed) {
  const Expectation expected = bounded_expectation(c, seed);
  TensorMap tensors = expected.value;
  for (const auto& [key, bound] : expected.bounds.elements) tensors.emplace(key + ".bound", bound);
  for (const auto& [key, gate] : expected.bounds.norms)
    tensors.emplace(key + ".norm", make_f64({2}, {gate.limit, gate.floor}));
  return tensors;
}

TensorMap exact(reference::Results results) {
  for (auto& [key, tensor] : results)
    if (tensor.is_floating_point()) tensor = at::add(tensor, 0.0);
  return reference::to_host(results);
}

std::string_view comparison(reference::Truth truth) {
  constexpr std::array<std::string_view, 3> kWords = {"numeric", "bitwise", "bounded"};
  return kWords.at(static_cast<size_t>(truth));
}

}  // namespace

void write_expected(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed,
                    const std::filesystem::path& folder) {
  TensorMap tensors;
  if (c.truth == reference::Truth::Bounded)
    tensors = bounded(c, seed);
  else if (reference::Results results = reference::run_detached(c, seed, stage_orders(schedule));
           c.truth == reference::Truth::Exact)
    tensors = exact(std::move(results));
  else
    tensors = reference::to_host(results);
  nlohmann::ordered_json about = nlohmann::ordered_json::object();
  about["format"] = kExpectedFormat;
  about["truth"] = to_string(c.truth);
  about["compare"] = comparison(c.truth);
  about["schedule"] = schedule.name;
  about["library"] = std::string("LibTorch ") + TORCH_VERSION;
  write_file(folder / "expected.json", json_layout(about));
  write_tensor_file(folder / "expected.safetensors", tensors);
}

}  // namespace plumbline::conformance
