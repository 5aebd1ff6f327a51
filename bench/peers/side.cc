#include "bench/peers/side.h"

#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/error.h"
#include "runtime/io/write_file.h"
#include "runtime/text/one_line.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {

// Names and texts of the scripts: the program carries them, so that it works wherever it is installed.
extern const std::span<const std::pair<std::string_view, std::string_view>> python_sides;

std::vector<std::string> python_side(const std::string& python, const std::string& script,
                                     const std::filesystem::path& folder) {
  for (const auto& [name, text] : python_sides) write_file(folder / name, std::string(text));
  return {python, (folder / script).string()};
}

void run_side(const std::string& name, const conformance::ProcessOptions& process, const std::string& option,
              const std::string& needs, const std::filesystem::path& result) {
  std::filesystem::remove(result);  // a file left by another process is not this one's
  const conformance::ProcessResult ended = conformance::run_process(process);
  if (!ended.could_not_start.empty()) throw InputError(option + ended.could_not_start);
  if (ended.exit_code == kLacksModule) throw InputError(option + one_line(ended.output) + "; " + needs);
  if (!ended.succeeded()) throw Error(name + " " + describe(ended) + "\n" + ended.output);
  if (!std::filesystem::exists(result))
    throw InputError(option + name + " (" + process.argv.front() + ") succeeded, but wrote no results; " + needs);
}

std::string load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? fixed(load, 2) : "unknown";
}

}  // namespace plumbline::bench
