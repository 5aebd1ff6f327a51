#include "conformance/protocol/backend_log.h"

#include <cstdio>
#include <utility>

#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/write_text.h"

namespace plumbline::conformance {
namespace {

void append(const std::filesystem::path& file, CappedText& text) {
  if (text.empty()) return;
  std::filesystem::create_directories(file.parent_path());
  append_text_file(file, text.text());
}

}  // namespace

BackendLog::~BackendLog() {
  try {
    end_case();
    append(backend_log(out_), outside_);
  } catch (const std::exception& error) {  // a full disk, say: the run itself tells it as well
    std::fprintf(stderr, "plumbline: the backend's output is not kept: %s\n", error.what());
  }
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
