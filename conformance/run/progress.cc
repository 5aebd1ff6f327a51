#include "conformance/run/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "conformance/report/text.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

/// Plain lines about the progress are at least so many runs apart.
constexpr int kFewestRunsToALine = 10;

/// As wide as `total`.
std::string right_aligned(int count, int total) {
  std::string text = std::to_string(count);
  const size_t width = std::to_string(total).size();
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

}  // namespace

bool is_live_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && *term != '\0' && std::strcmp(term, "dumb") != 0;
}

bool wants_colour(int fd) {
  const char* refused = std::getenv("NO_COLOR");  // https://no-color.org
  return is_live_terminal(fd) && (refused == nullptr || *refused == '\0');
}

int terminal_columns(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Progress::Progress(std::ostream& out, Options options) : out_(out), options_(options) { draw(); }

Progress::~Progress() { end(); }

void Progress::end() {
  erase();
  options_.live = false;
  out_.flush();
}

void Progress::working_on(const std::string& what) {
  current_ = what;
  draw();
}

void Progress::finished(const Verdict& verdict) {
  const Status status = verdict.finding.status;
  const bool failure = is_failure(status);
  ++done_;
  count(verdict, 1);
  if (status != Status::Unsupported) {
    ++executed_;
    seconds_ += verdict.seconds;
  }
  const int tenth = std::max(options_.total / 10, kFewestRunsToALine);
  if (options_.verbose)
    note("[" + right_aligned(done_, options_.total) + "/" + std::to_string(options_.total) + "] " +
         (failure ? failure_text(verdict, options_.report) : sentence(verdict)));
  else if (failure)
    tell_failure(verdict);
  else if (options_.live)
    draw();
  if (!options_.live && !options_.verbose && done_ % tenth == 0 && done_ < options_.total) note(counts());
}

void Progress::replaced(const Verdict& was, const Verdict& verdict) {
  count(was, -1);
  count(verdict, 1);
  tell_failure(verdict);
}

void Progress::count(const Verdict& verdict, int by) {
  if (verdict.finding.status == Status::Pass) passed_ += by;
  if (is_failure(verdict.finding.status)) failed_ += by;
}

void Progress::tell_failure(const Verdict& verdict) {
  const std::string text = failure_text(verdict, options_.report);
  note(options_.colour ? "\x1b[31m" + text + "\x1b[0m" : text);
}

void Progress::note(const std::string& line) {
  erase();
  out_ << line << '\n';
  out_.flush();
  draw();
}

std::string Progress::counts() const {
  const auto named = [](int count, const char* what) {
    return count == 0 ? std::string() : ", " + std::to_string(count) + what;
  };
  return std::to_string(done_) + "/" + std::to_string(options_.total) + ": " + std::to_string(passed_) + " passed" +
         named(failed_, " failed") + named(done_ - passed_ - failed_, " other");
}

/// From the mean of the runs so far; empty while they are too few.
std::string Progress::time_left() const {
  constexpr int kEnoughRuns = 5;
  if (executed_ < kEnoughRuns) return {};
  const double seconds = seconds_ / executed_ * (options_.total - done_);
  if (seconds < 1) return {};
  const bool in_minutes = seconds >= 100;
  return ", about " + std::to_string(std::lround(in_minutes ? seconds / 60 : seconds)) + (in_minutes ? " min" : " s") +
         " left";
}

void Progress::draw() {
  if (!options_.live) return;
  std::string line = counts() + time_left();
  if (!current_.empty()) line += " | " + one_line(current_);
  const auto room = static_cast<size_t>(options_.columns > 1 ? options_.columns - 1 : 1);
  if (line.size() > room) line.resize(room);
  out_ << "\r\x1b[K" << line;
  out_.flush();
  drawn_ = true;
}

void Progress::erase() {
  if (drawn_) out_ << "\r\x1b[K";
  drawn_ = false;
}

}  // namespace plumbline::conformance
