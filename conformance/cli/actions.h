// The subcommands that need LibTorch: the options of each, once they are valid, and the functions that execute them. A
// member without a comment is the option of its name, which `plumbline SUBCOMMAND --help` explains. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "conformance/cli/partition/partition_source.h"
#include "conformance/plan/plan.h"
#include "conformance/program/options.h"
#include "conformance/proof/prove_cases.h"
#include "conformance/run/folder/check.h"

namespace plumbline::cli {

struct RunCommand {
  conformance::RunOptions options;
  bool list = false;
};

/// Proves pipelined runs of cases, unless a flag below is set.
struct ProveCommand {
  proof::CasesOptions cases;
  program::ProgramOptions program;
  bool of_program = false;  ///< --program: proves the step of `program`, by the claim of `cases`
  bool whole_step = false;  ///< --claim step: proves the steps of the cases' unsplit models, without a schedule
};

struct MutantsCommand {
  conformance::RunOptions runs;  ///< in which faults are injected
  std::string mutants = "*";     ///< --mutant: patterns, see select_mutants()
  bool matrix = false, full = false, json = false;
  int killers = 2;
  int random = 0;  ///< the number of random faults; 0: not given
  std::filesystem::path report, record, recorded;
};

struct SplitCommand {
  std::filesystem::path program, out, drawing;
  program::ProgramSplit split;
  std::string loss;
  bool print = false;
};

struct ExportCommand {
  std::string profile = "core";
  std::string case_glob;
  std::filesystem::path corpus;
  std::string schedule = "1f1b";
  int ranks = 4;
  uint64_t seed = 1;
  bool expected = false;
  std::string out;
  std::string lock, check_lock;
  bool opset = false;
};

struct BackendCommand {
  std::string verb;  ///< "describe", "plan" or "run"
  std::string job, out, transport = "threads", nccl;
};

struct CheckCommand : conformance::CheckOptions {
  std::filesystem::path against;
  bool exact = false;
  bool selects_runs = false;     ///< --profile or --case is given
  std::filesystem::path corpus;  ///< cases of the user's own that a certificate is about
};

struct DoctorCommand {
  std::string backend, launcher, nccl;
  int ranks = 0;  ///< 0: none are started
};

/// Each returns the exit code, and throws as its subcommand does.
struct Actions {
  std::function<int(const RunCommand&)> run_cases;
  std::function<int(const program::ProgramOptions&)> run_program;
  std::function<int(const ProveCommand&)> prove;
  std::function<int(const MutantsCommand&)> mutants;
  std::function<int(const SplitCommand&)> split;
  std::function<int(const ExportCommand&)> export_cases;
  std::function<int(const BackendCommand&)> backend;
  std::function<int(const CheckCommand&)> check;
  std::function<int(const DoctorCommand&)> doctor;
  ProgramReader read_program;
  std::function<std::string()> version;
};

}  // namespace plumbline::cli
