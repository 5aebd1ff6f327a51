#include "conformance/protocol/command/job_failure.h"

#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"

namespace plumbline::conformance {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

/// Up to the first mark at the end of a word.
std::string first_sentence(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (std::string_view(".!?:").find(text[i]) != std::string_view::npos &&
        (i + 1 == text.size() || text[i + 1] == ' '))
      return text.substr(0, i + 1);
  return text;
}

/// Standard error without the notices of Open MPI's mpirun, which stand between two lines of dashes, are long and end
/// with advice; and the first sentence of each notice.
struct Divided {
  std::vector<std::string> outside, notices;
};

Divided divided(const std::vector<std::string>& lines) {
  constexpr size_t kLeastDashes = 20;
  Divided found;
  std::optional<std::vector<std::string>> inside;
  for (const std::string& line : lines) {
    const bool is_frame = line.size() >= kLeastDashes && line.find_first_not_of('-') == std::string::npos;
    if (!is_frame) {
      (inside ? *inside : found.outside).push_back(line);
    } else if (inside && !inside->empty()) {
      std::string notice, word;
      for (const std::string& part : *inside)
        for (std::istringstream words(part); words >> word;) notice += (notice.empty() ? "" : " ") + word;
      found.notices.push_back(first_sentence(notice));
      inside.reset();
    } else {
      inside.emplace();
    }
  }
  if (inside) found.outside.insert(found.outside.end(), inside->begin(), inside->end());  // a line of dashes alone
  return found;
}

/// torchrun's report on the rank that failed first without a message; empty without one.
std::string torchruns_root_cause(const std::vector<std::string>& lines) {
  auto line = std::ranges::find_if(lines, [](const std::string& l) { return l.starts_with("Root Cause"); });
  std::string rank, code;
  for (; line != lines.end() && code.empty(); ++line) {
    const size_t begin = line->find_first_not_of(' '), colon = line->find(" : ");
    if (colon == std::string::npos) continue;
    const std::string value = line->substr(colon + 3);
    if (line->compare(begin, 5, "rank ") == 0) rank = value.substr(0, value.find(' '));
    if (line->compare(begin, 9, "exitcode ") == 0) code = value;
  }
  return code.empty() ? "" : "rank " + rank + " failed first: exitcode " + code;
}

/// Whether a line is like "RuntimeError: why", also after "[rank0]: ", the last line of a Python traceback. Excludes
/// torchrun's own exception about its ranks.
bool names_an_exception(std::string_view line) {
  if (line.starts_with('[')) line.remove_prefix(std::min(line.size(), line.find("]: ") + 3));
  const std::string_view word = line.substr(0, line.find(':'));
  const bool is_name =
      !word.empty() && word.size() < line.size() &&
      std::ranges::all_of(word, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  return is_name && (word.ends_with("Error") || word.ends_with("Exception")) && !word.ends_with(".ChildFailedError");
}

/// Words of srun and of Slurm's daemon about the end of tasks, whose own words precede them, and of Open MPI: about its
/// notices, the end of a rank that has told its error ("*** ..."), and connections that the end of another rank broke:
/// "[HOST][[JOB,1],0][FILE.c:LINE:FUNCTION] ...".
bool is_consequence(const std::string& line) {
  return line.starts_with("srun: ") || line.starts_with("slurmstepd") || line.starts_with("*** ") ||
         (line.starts_with('[') &&
          (line.find("][[") != std::string::npos || line.find("] Local abort before MPI_INIT") != std::string::npos ||
           line.find(" sent help message ") != std::string::npos ||
           line.find("_base_help_aggregate\" to 0 to see all") != std::string::npos));
}

/// Why, in a rank's or a launcher's own words, or in what is left of them.
std::string words_of_failure(const JobResult& result) {
  const std::vector<std::string> lines = lines_of(result.errors);
  if (const auto line = std::ranges::find_if(lines, names_an_exception); line != lines.end()) return *line;
  if (const std::string cause = torchruns_root_cause(lines); !cause.empty()) return cause;
  const auto [outside, notices] = divided(lines);
  for (const std::vector<std::string>* texts : {&notices, &outside})
    for (const std::string& text : *texts)
      if (text.find("exited on signal") != std::string::npos) return text;
  // MPICH's mpiexec says it on standard output.
  for (const std::string* text : {&result.output, &result.errors})
    if (const size_t at = text->find("YOUR APPLICATION TERMINATED WITH THE EXIT STRING"); at != std::string::npos)
      return text->substr(at, text->find('\n', at) - at);
  if (const auto own = std::find_if_not(outside.rbegin(), outside.rend(), is_consequence); own != outside.rend())
    return *own;
  const auto is_of_task = [](const std::string& line) { return line.find(": task") != std::string::npos; };
  if (const auto first = std::ranges::find_if(outside, is_of_task); first != outside.end()) return *first;
  if (!notices.empty()) return notices.front();
  return outside.empty() ? "" : outside.back();
}

}  // namespace

std::string clause_on_hidden_event(const JobResult& result) {
  if (result.hidden_event.empty()) return "";
  return "; \"" + result.hidden_event + "\" on standard output is no event, since other words precede it; let the " +
         "launcher print lines without its labels";
}

std::string reason_of(const JobResult& result) {
  for (const std::string* text : {&result.errors, &result.output})
    if (const size_t at = text->find("plumbline: "); at != std::string::npos)
      return shortened(std::string_view(*text).substr(at, text->find('\n', at) - at));
  const std::string words = result.timed_out ? "" : words_of_failure(result);
  return (words.empty() ? result.ending : shortened(one_line(words)) + " (" + result.ending + ")") +
         (result.lack.empty() ? "" : "; " + result.lack);
}

std::string lack_of_ranks() {
  const std::string room = lack_of_room(), files = lack_of_open_files();
  return room + (room.empty() || files.empty() ? "" : "; ") + files;
}

std::string lack_of_open_files() {
  constexpr rlim_t kNeeded = 256;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kNeeded) return "";
  return "a process may open " + std::to_string(files.rlim_cur) + " files, MPI and cases need " +
         std::to_string(kNeeded) + "; raise the limit: ulimit -n " + std::to_string(kNeeded);
}

std::string lack_of_room() {
  constexpr uintmax_t kMegabyte = 1'000'000, kNeeded = 64 * kMegabyte;
  try {
    const TemporaryRoom room = temporary_room();
    if (room.bytes >= kNeeded) return "";
    return "the temporary folder " + room.folder.string() + " has " + std::to_string(room.bytes / kMegabyte) +
           " MB free, MPI and cases need " + std::to_string(kNeeded / kMegabyte) +
           "; free some, or set TMPDIR to another folder";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace plumbline::conformance
