#include "conformance/context.h"

#include <torch/version.h>

#include <ctime>
#include <fstream>
#include <thread>

#include "conformance/version.h"

namespace plumbline {
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

std::string plumbline_version() { return PLUMBLINE_VERSION; }

std::vector<std::pair<std::string, std::string>> run_context(
    const std::string& command_line, const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::pair<std::string, std::string>> context = {
      {"version", PLUMBLINE_VERSION},   {"commit", PLUMBLINE_COMMIT}, {"libtorch", TORCH_VERSION},
      {"compiler", "g++ " __VERSION__}, {"hardware", hardware()},     {"date", utc_now()},
  };
  context.insert(context.end(), more.begin(), more.end());
  context.emplace_back("command", command_line);
  return context;
}

}  // namespace plumbline
