// The fixtures of tests with foreign backends: shell scripts, and the example in C with something between it and
// plumbline. PLUMBLINE_C_HOST names the example.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "conformance/cli/testing/cli_fixture.h"

namespace plumbline::cli {

class BackendCli : public Cli {
 protected:
  /// A backend.toml whose program is the shell script `body`.
  std::string scripted(const std::string& body, const std::string& more = "") {
    std::ofstream(folder_ / "backend.sh") << body << "\n";
    const std::string file = (folder_ / "backend.toml").string();
    std::ofstream(file) << "schema = \"plumbline-backend/1\"\nargv = [\"sh\", \"backend.sh\"]\n" << more;
    return file;
  }
  conformance::ProcessResult run(const std::string& backend, const std::string& cases,
                                 const std::string& schedules = "gpipe") {
    return start({"run", "--backend", backend, "--case", cases, "--schedule", schedules, "--ranks", "2", "--report",
                  report("r")});
  }
  std::map<std::string, nlohmann::json> verdicts() const {
    std::map<std::string, nlohmann::json> all;
    const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
    for (const auto& verdict : json.at("verdicts"))
      all[verdict.at("case").get<std::string>() + " " + verdict.at("schedule").get<std::string>()] = verdict;
    return all;
  }
};

class ExampleInC : public BackendCli {
 protected:
  void SetUp() override {
    BackendCli::SetUp();
    const char* host = std::getenv("PLUMBLINE_C_HOST");
    ASSERT_NE(host, nullptr) << "set PLUMBLINE_C_HOST to the c_host executable";
    if (*host == 0) GTEST_SKIP() << "c_host is not built: no cJSON";
    host_ = host;
  }

  /// The example in C. The shell command `what` changes the results of case 0, of which $f is rank 0's file, before the
  /// case is reported as done.
  std::string tampered(const std::string& what) {
    return scripted("if [ $1 != run ]; then exec '" + host_ +
                    "' \"$@\"; fi\nf=$5/gpipe/exact-mlp-sum/rank0.safetensors\n'" + host_ +
                    "' \"$@\" | while read line; do\n  if [ \"$line\" = '@plumbline case 0 done' ]; then " + what +
                    "; fi\n  echo \"$line\"\ndone");
  }

  std::string host_;
};

inline size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace plumbline::cli
