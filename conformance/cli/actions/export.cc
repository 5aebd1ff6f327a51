// plumbline export: writes cases as files that any language can read.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>

#include "conformance/cli/actions/execute.h"
#include "conformance/corpus/corpus.h"
#include "conformance/export/export_corpus.h"
#include "conformance/export/opset.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"

namespace plumbline::cli {
namespace {

int print_opset() {
  for (const conformance::OpsetEntry& entry : conformance::opset()) {
    std::string arguments;
    for (std::string_view argument : entry.arguments)
      arguments += (arguments.empty() ? "" : ", ") + std::string(argument);
    std::printf("%s(%s)\n", std::string(entry.name).c_str(), arguments.c_str());
  }
  return 0;
}

void say(const conformance::ExportedCase& c, bool quiet) {
  if (!c.refused.empty())
    std::fprintf(stderr, "not exported: %s x %s: %s\n", c.id.c_str(), c.schedule.c_str(), c.refused.c_str());
  else if (!quiet)
    std::printf("%s\n", c.folder.c_str());
}

int check_lock(const std::string& file, const std::string& present) {
  const std::vector<std::string> differences = conformance::lock_differences(read_file(file), present);
  for (const std::string& difference : differences) std::printf("%s\n", difference.c_str());
  if (differences.empty()) return 0;
  std::printf("%zu files differ from %s; if that is intended, rewrite it by --lock\n", differences.size(),
              file.c_str());
  return 1;
}

}  // namespace

int execute_export(const ExportCommand& options) {
  if (options.opset) return print_opset();
  const bool locks = !options.lock.empty() || !options.check_lock.empty();
  if (options.out.empty() && !locks)
    throw InputError("export: nowhere to write to; give -o DIR, or --lock or --check-lock");
  conformance::add_cases(options.corpus);
  at::set_num_threads(1);  // expected results are summed in the ranks' order
  const TemporaryFolder scratch;
  conformance::ExportRequest request;
  request.cases = options.case_glob.empty() ? conformance::profile(options.profile)
                                            : conformance::select(conformance::corpus(), options.case_glob);
  request.schedules = conformance::choose_schedules(options.schedule);
  request.ranks = options.ranks;
  request.seed = options.seed;
  request.expected = options.expected;
  request.out = options.out.empty() ? scratch.path() : std::filesystem::path(options.out);
  const std::vector<conformance::ExportedCase> cases =
      export_cases(request, [&](const conformance::ExportedCase& c) { say(c, options.out.empty()); });
  if (std::all_of(cases.begin(), cases.end(), [](const conformance::ExportedCase& c) { return !c.refused.empty(); }))
    throw InputError("export: none of " + std::to_string(cases.size()) + " could be exported, see above");
  const std::string lock = conformance::lock_text(cases);
  if (!options.lock.empty()) write_file(options.lock, lock);
  return options.check_lock.empty() ? 0 : check_lock(options.check_lock, lock);
}

}  // namespace plumbline::cli
