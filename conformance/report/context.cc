#include "conformance/report/context.h"

#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "conformance/version.h"

namespace plumbline::conformance {
namespace {

std::string hardware() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> run_environment() {
  constexpr std::string_view prefixes[] = {"OMP_",      "GOMP_",    "KMP_",  "MKL_",  "OMPI_MCA_", "PRTE_MCA_",
                                           "PMIX_MCA_", "MPICH_",   "UCX_",  "NCCL_", "CUDA_",     "CUBLAS_",
                                           "TORCH_",    "PYTORCH_", "ATEN_", "LD_",   "MALLOC_"};
  std::vector<std::pair<std::string, std::string>> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    if (std::any_of(std::begin(prefixes), std::end(prefixes), [&](auto prefix) { return text.starts_with(prefix); }))
      kept.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::string plumbline_version() { return PLUMBLINE_VERSION; }

std::vector<std::pair<std::string, std::string>> run_context(
    const std::string& command_line, const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::pair<std::string, std::string>> context = {
      {"version", PLUMBLINE_VERSION},
      {"commit", PLUMBLINE_COMMIT},
      {"dirty", std::string_view(PLUMBLINE_COMMIT).ends_with("-dirty") ? "yes" : "no"},
      {"libtorch", TORCH_VERSION},
      {"compiler", "g++ " __VERSION__},
      {"hardware", hardware()},
      {"date", utc_now()},
  };
  context.insert(context.end(), more.begin(), more.end());
  context.emplace_back("command", command_line);
  return context;
}

}  // namespace plumbline::conformance
