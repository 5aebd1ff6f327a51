#include "conformance/protocol/command/backend_log.h"

#include <cstdio>
#include <utility>

#include "conformance/protocol/report_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

/// Without a log the run goes on: a full disk is told by the run as well, and a backend may have put anything in the
/// place of the file, or of its folder.
void append(const std::filesystem::path& out, const std::filesystem::path& file, CappedText& text) {
  if (text.empty()) return;
  try {
    create_folders(out, file.parent_path().lexically_relative(out));
    append_file(file, text.text());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline: the backend's output is not kept: %s\n", one_line(error.what()).c_str());
  }
}

}  // namespace

BackendLog::~BackendLog() {
  end_case();
  append(out_, backend_log(out_), outside_);
}

void BackendLog::saw(const JobEvent& event) {
  end_case();
  if (!event.throughput && !event.done) current_ = event.index;
}

void BackendLog::add(std::string_view text) { (current_ ? of_case_ : outside_).add(text); }

void BackendLog::end_case() {
  if (!current_) return;
  append(out_, backend_log(out_, job_.cases.at(*current_)), of_case_);
  of_case_ = CappedText(kLimit);
  current_.reset();
}

}  // namespace plumbline::conformance
