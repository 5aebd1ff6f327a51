#include "bench/cli/peer_options.h"

namespace plumbline::bench {

void add_python(CLI::App& command, std::string& python, const std::string& meaning) {
  command.add_option("--python", python, meaning)->required()->type_name("PYTHON");
}

void add_models(CLI::App& command, std::vector<std::string>& models, const std::string& meaning) {
  command.add_option("--model", models, meaning)->type_name("MODEL")->allow_extra_args(false)->capture_default_str();
}

void add_rounds(CLI::App& command, int& rounds, const std::string& meaning) {
  command.add_option("--rounds", rounds, meaning)->check(CLI::Range(1, 1000))->capture_default_str();
}

void add_threads(CLI::App& command, int& threads, const std::string& meaning) {
  command.add_option("--threads", threads, meaning)->check(CLI::Range(1, 4096))->capture_default_str();
}

void add_seconds(CLI::App& command, double& seconds, const std::string& meaning) {
  command.add_option("--seconds", seconds, meaning)->check(CLI::Range(0.0, 1e6))->capture_default_str();
}

}  // namespace plumbline::bench
