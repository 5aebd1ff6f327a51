#include "conformance/backend/flight/told_waits.h"

#include <mutex>

#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"

namespace plumbline::conformance {

transport::flight::Flights read_flights(const std::filesystem::path& out, int ranks) {
  transport::flight::Flights flights;
  for (int rank = 0; rank < ranks; ++rank)
    if (auto events = transport::flight::read_flight_log(flight_log(out, rank))) flights[rank] = std::move(*events);
  return flights;
}

std::string told_waits(const transport::flight::Flights& flights, bool killed, const std::filesystem::path& out,
                       const std::filesystem::path& page) {
  if (!killed && !any_timed_out(flights)) return "";
  const std::string line = who_waits(flights);
  if (line.empty()) return "";
  if (!std::filesystem::is_directory(out)) return "; " + line;
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
