#include "conformance/protocol/process/process.h"

#include <dirent.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include "conformance/protocol/process/capped_text.h"
#include "conformance/protocol/process/guard.h"
#include "conformance/protocol/process/pipe.h"
#include "conformance/protocol/process/scratch_folder.h"
#include "runtime/clock.h"
#include "runtime/error.h"

extern char** environ;

namespace plumbline::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// An environment variable of a child, which all its descendants inherit, wherever they move in the process tree.
constexpr const char* mark_variable = "PLUMBLINE_SUPERVISED";

/// The guards ask the children to end, those that were not yet asked.
void leave_children_and_die(int signal) {
  Guard::leave_all();
  ScratchFolder::remove();
  raise(signal);  // SA_RESETHAND has restored the default action, and SA_NODEFER lets it happen
}

/// The C form of a list of strings; valid as long as `strings`.
std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!extra.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : extra) merged.push_back(name + "=" + value);
  return merged;
}

/// Starts the program with the given stdout and stderr.
std::unique_ptr<Guard> started(const ProcessOptions& options, const std::string& mark, int output, int errors) {
  std::map<std::string, std::string> extra = options.environment;
  const char* outer = std::getenv(mark_variable);  // a supervisor started by another one has both marks
  extra[mark_variable] = (outer == nullptr ? "" : outer) + mark;
  const std::vector<std::string> environment = merged_environment(extra);
  return std::make_unique<Guard>(GuardedProgram{c_strings(options.argv).data(), c_strings(environment).data(),
                                                options.directory.c_str(), output, errors});
}

/// Every process whose initial environment contains `mark`, as far as we may read it.
std::vector<pid_t> find_marked(const std::string& mark) {
  std::vector<pid_t> marked;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return marked;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(mark) != std::string::npos) marked.push_back(pid);
  }
  closedir(proc);
  return marked;
}

/// Unique among all runs on this machine; its last character prevents one mark from being a prefix of another.
std::string new_mark() {
  static std::atomic<unsigned> counter{0};
  return std::to_string(getpid()) + "-" + std::to_string(Clock::now().time_since_epoch().count()) + "-" +
         std::to_string(counter++) + ";";
}

/// A piece of a child's output.
struct Piece {
  std::string_view text;
  bool is_error = false;  ///< from the second of its pipes
};

/// A running child: its group, its output, the notification of its end.
class Child {
 public:
  Child(std::unique_ptr<Guard> guard, std::string mark, Pipe& output, Pipe& errors)
      : guard_(std::move(guard)), mark_(std::move(mark)), printed_{&output, &errors} {}
  ~Child() { kill_all(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Blocks until output, the end, or `until`. Returns the output; sets `ended`.
  Piece wait(Clock::time_point until, bool& ended) {
    const auto left = std::chrono::ceil<Milliseconds>(until - Clock::now()).count();
    return read_after(static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000)), ended);
  }

  /// The present contents of the pipes, without waiting; empty if there is no more.
  Piece drain() {
    bool ended = false;
    return read_after(0, ended);
  }

  /// The number of bytes in the first and in the second pipe.
  std::array<size_t, 2> printed_bytes() const {
    std::array<size_t, 2> bytes{};
    for (size_t i = 0; i < printed_.size(); ++i)
      if (int count = 0; ioctl(printed_[i]->read_end.get(), FIONREAD, &count) == 0)
        bytes[i] = static_cast<size_t>(count);
    return bytes;
  }

  /// A piece of the second pipe, without waiting; valid beside a piece of the first. Empty if there is no more.
  std::string_view errors() {
    pollfd event = {open_[1] ? printed_[1]->read_end.get() : -1, POLLIN, 0};
    return poll(&event, 1, 0) > 0 ? read_from(1) : std::string_view();
  }

  void ask_to_end() { guard_->ask_to_end(); }

  void kill_all() {
    guard_->end_all();
    for (const pid_t pid : find_marked(mark_)) kill(pid, SIGKILL);  // if the guard itself was killed
  }

  Guard::Ending ending() { return guard_->wait(); }

 private:
  Piece read_after(int milliseconds, bool& ended) {
    std::array<pollfd, 3> events;
    for (size_t i = 0; i < printed_.size(); ++i) events[i] = {open_[i] ? printed_[i]->read_end.get() : -1, POLLIN, 0};
    events[2] = {guard_->end_descriptor(), POLLIN, 0};
    if (poll(events.data(), events.size(), milliseconds) <= 0) return {};
    if (events[2].revents != 0) ended = true;
    for (size_t i = 0; i < printed_.size(); ++i) {
      if (events[i].revents == 0) continue;
      if (const std::string_view text = read_from(i); !text.empty()) return {text, i == 1};
    }
    return {};
  }

  std::string_view read_from(size_t i) {
    const ssize_t count = read(printed_[i]->read_end.get(), buffers_[i].data(), buffers_[i].size());
    if (count == 0) open_[i] = false;
    return count > 0 ? std::string_view(buffers_[i].data(), static_cast<size_t>(count)) : std::string_view();
  }

  std::unique_ptr<Guard> guard_;
  std::string mark_;
  std::array<Pipe*, 2> printed_;  // the second stays empty if both kinds of output go into the first
  std::array<bool, 2> open_ = {true, true};
  std::array<std::array<char, 65536>, 2> buffers_;
};

}  // namespace

ProcessResult run_process(const ProcessOptions& options) {
  if (options.argv.empty() || options.argv[0].empty()) throw InputError("no program to run: argv is empty");
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return seconds_since(start); };
  ProcessResult result;
  Pipe pipe, errors_pipe;
  const std::string mark = new_mark();
  std::unique_ptr<Guard> guard =
      started(options, mark, pipe.write_end.get(), (options.separate_errors ? errors_pipe : pipe).write_end.get());
  pipe.write_end.reset();
  errors_pipe.write_end.reset();
  if (const int error = guard->could_not_start(); error != 0) {
    std::error_code none;
    const bool has_folder = options.directory.empty() || std::filesystem::is_directory(options.directory, none);
    result.could_not_start = "cannot start " + options.argv[0] + ": " +
                             (has_folder ? std::strerror(error) : "there is no folder " + options.directory);
    result.seconds = elapsed();
    return result;
  }
  Child child(std::move(guard), mark, pipe, errors_pipe);
  CappedText output(options.output_limit), errors(options.errors_limit);
  Clock::time_point last_output = start;
  const auto take_error = [&](std::string_view text) {
    errors.add(text);
    if (options.on_errors) options.on_errors(text);
  };
  const std::function<void()> hear_errors = [&] {
    // No more than has arrived by now: it may be printed without end.
    for (size_t left = child.printed_bytes()[1]; left > 0;) {
      const std::string_view text = child.errors();
      if (text.empty()) break;
      take_error(text);
      left -= std::min(left, text.size());
    }
  };
  const auto take = [&](const Piece& piece) {
    if (piece.text.empty()) return;
    if (piece.is_error) {
      take_error(piece.text);
    } else {
      output.add(piece.text);
      if (options.on_output) options.on_output(piece.text, hear_errors);
    }
    last_output = Clock::now();  // the time in the callback is not the child's silence
  };

  const Clock::time_point never = Clock::time_point::max();
  const Clock::time_point deadline = options.timeout.count() > 0 ? start + options.timeout : never;
  const auto silent_at = [&] {
    return options.silence_timeout.count() > 0 ? last_output + options.silence_timeout : never;
  };
  const auto due = [&] { return options.due ? options.due() : ProcessOptions::Due{}; };
  Clock::time_point kill_at = never;
  bool ended = false;
  while (!ended) {
    const Clock::time_point first = std::min({deadline, silent_at(), due().at});
    take(child.wait(std::min(kill_at, result.timed_out ? never : first), ended));
    if (ended) break;
    const Clock::time_point now = Clock::now();
    if (!result.timed_out && now >= std::min({deadline, silent_at(), due().at})) {
      result.timed_out = true;
      result.timeout_reason = now >= deadline   ? "no end within " + seconds_text(options.timeout)
                              : now >= due().at ? due().reason
                                                : "no output for " + seconds_text(options.silence_timeout);
      child.ask_to_end();
      kill_at = now + options.grace;
    } else if (now >= kill_at) {
      child.kill_all();
      kill_at = never;  // the kernel ends it
    }
  }
  const Guard::Ending ending = child.ending();
  child.kill_all();  // the processes that it left running
  const auto [printed, printed_errors] = child.printed_bytes();
  for (size_t left = printed + printed_errors; left > 0;) {  // a process that could not be killed may print on
    const Piece piece = child.drain();
    if (piece.text.empty()) break;
    left -= std::min(left, piece.text.size());
    take(piece);
  }
  if (ending.exited) {
    result.exit_code = ending.status;
  } else {
    result.signal = ending.status;
  }
  result.output = output.text();
  result.errors = errors.text();
  result.seconds = elapsed();
  return result;
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("_-./,:=+@%", c) != nullptr; };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string seconds_text(std::chrono::milliseconds duration) {
  std::ostringstream text;
  text << static_cast<double>(duration.count()) / 1000.0 << " s";
  return text.str();
}

std::string describe(const ProcessResult& result) {
  if (!result.could_not_start.empty()) return result.could_not_start;
  if (result.timed_out) return result.timeout_reason;
  if (result.exit_code) return "exited with code " + std::to_string(*result.exit_code);
  return "killed by signal " + std::to_string(result.signal) + " (" + strsignal(result.signal) + ")";
}

void end_children_on_signals() {
  struct sigaction action{};
  action.sa_handler = leave_children_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);  // the second Ctrl-C does not wait
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace plumbline::conformance
