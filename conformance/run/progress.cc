#include "conformance/run/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include "runtime/text/one_line.h"

namespace plumbline::conformance {

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

Progress::~Progress() {
  erase();
  out_.flush();
}

void Progress::working_on(const std::string& what) {
  current_ = what;
  draw();
}

void Progress::finished(const Verdict& verdict) {
  ++done_;
  if (verdict.finding.status == Status::Pass) {
    ++ok_;
  } else if (is_failure(verdict.finding.status)) {
    ++failed_;
  } else {
    ++other_;
  }
  if (!options_.live) {
    const std::string total = std::to_string(options_.total);
    std::string count = std::to_string(done_);
    if (count.size() < total.size()) count.insert(0, total.size() - count.size(), ' ');
    out_ << '[' << count << '/' << total << "] " << sentence(verdict) << std::endl;
  } else if (is_failure(verdict.finding.status) || verdict.finding.status == Status::NotRun) {
    note(options_.colour ? "\x1b[31m" + sentence(verdict) + "\x1b[0m" : sentence(verdict));
  } else {
    draw();
  }
}

void Progress::note(const std::string& line) {
  erase();
  out_ << line << '\n';
  out_.flush();
  draw();
}

void Progress::draw() {
  if (!options_.live) return;
  std::string line = std::to_string(done_) + "/" + std::to_string(options_.total) + " ok " + std::to_string(ok_);
  if (failed_ > 0) line += " fail " + std::to_string(failed_);
  if (other_ > 0) line += " other " + std::to_string(other_);
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
