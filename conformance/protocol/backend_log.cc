#include "conformance/protocol/backend_log.h"

#include <cstdio>
#include <utility>

#include "conformance/protocol/report_folder.h"
#include "runtime/io/write_text.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

/// Without a log the run goes on: a full disk is told by the run as well, and a backend may have put anything in the
/// place of the file.
void append(const std::filesystem::path& file, CappedText& text) {
  if (text.empty()) return;
  try {
    std::filesystem::create_directories(file.parent_path());
    append_text_file(file, text.text());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline: the backend's output is not kept: %s\n", one_line(error.what()).c_str());
  }
}

}  // namespace

BackendLog::~BackendLog() {
  end_case();
  append(backend_log(out_), outside_);
}

void BackendLog::saw(const JobEvent& event) {
  end_case();
  if (!event.throughput && !event.done) current_ = event.index;
}

void BackendLog::add(std::string_view text) { (current_ ? of_case_ : outside_).add(text); }

void BackendLog::end_case() {
  if (!current_) return;
  append(backend_log(out_, job_.cases.at(*current_)), of_case_);
  of_case_ = CappedText(kLimit);
  current_.reset();
}

}  // namespace plumbline::conformance
