#include "conformance/backend/told_waits.h"

#include <mutex>

#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"
#include "runtime/transport/flight/who_waits.h"

namespace plumbline::conformance {

std::string told_waits(const std::filesystem::path& out, int ranks, bool killed, const std::filesystem::path& page) {
  transport::flight::Flights flights;
  for (int rank = 0; rank < ranks; ++rank)
    if (auto events = transport::flight::read_flight_log(flight_log(out, rank))) flights[rank] = std::move(*events);
  if (!killed && !any_timed_out(flights)) return "";
  const std::string line = who_waits(flights);
  if (line.empty()) return "";
  static std::mutex writing;  // ranks that are threads time out together, and a file has one writer
  const std::lock_guard lock(writing);
  try {
    create_folders(out, page.parent_path().lexically_relative(out));
    write_file(page, transport::flight::flight_page(flights));
  } catch (const std::exception&) {
    return "; " + line;  // the reason is worth more than the page
  }
  return "; " + line + " (see " + page.string() + ")";
}

}  // namespace plumbline::conformance
