#include "runtime/testing/mpi_listener.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/transport/collectives.h"

namespace plumbline::testing {
namespace {

// How much later than the first rank the last may end a test. Long: the deadlines within a body must expire first, so
// that the report names the operation that the rank waited for.
constexpr std::chrono::seconds kTestEndLimit{120};

/// Fields one after the other, each ended by a zero byte (which no field has: they were C strings).
using Fields = std::vector<std::string>;

std::vector<std::byte> pack(const Fields& fields) {
  std::vector<std::byte> bytes;
  for (const std::string& field : fields) {
    const std::span<const std::byte> text = std::as_bytes(std::span(field.c_str(), std::strlen(field.c_str()) + 1));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  return bytes;
}

Fields unpack(const std::vector<std::byte>& bytes) {
  Fields fields;
  const char* at = reinterpret_cast<const char*>(bytes.data());
  const char* end = at + bytes.size();
  while (at < end) {
    fields.emplace_back(at);
    at += fields.back().size() + 1;
  }
  return fields;
}

std::string full_name(const ::testing::TestInfo& test) {
  return std::string(test.test_suite_name()) + "." + test.name();
}

/// The name of the test; then file, line and message of each failure.
Fields failures_of(const ::testing::TestInfo& test) {
  Fields fields{full_name(test)};
  const ::testing::TestResult& result = *test.result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const ::testing::TestPartResult& part = result.GetTestPartResult(i);
    if (!part.failed()) continue;
    const char* file = part.file_name();
    fields.insert(fields.end(),
                  {file == nullptr ? "" : file, std::to_string(std::max(part.line_number(), 0)), part.message()});
  }
  return fields;
}

void raise_failures(int rank, const Fields& fields) {
  for (size_t i = 1; i + 2 < fields.size(); i += 3) {
    ADD_FAILURE_AT(fields[i].c_str(), std::stoi(fields[i + 1])) << "rank " << rank << ": " << fields[i + 2];
  }
}

}  // namespace

void MpiListener::OnTestEnd(const ::testing::TestInfo& test) {
  const Fields own = failures_of(test);
  try {
    const auto all = transport::gather_bytes(world_, 0, pack(own), transport::Deadline::after(kTestEndLimit));
    for (int rank = 1; rank < static_cast<int>(all.size()); ++rank) {
      const Fields theirs = unpack(all[rank]);
      if (theirs.empty() || theirs.front() != own.front()) {
        throw Error("rank " + std::to_string(rank) + " runs another test, " + (theirs.empty() ? "none" : theirs[0]));
      }
      raise_failures(rank, theirs);
    }
  } catch (const std::exception& error) {
    world_.abort("at the end of test " + own.front() + ": " + error.what());
  }
}

int agree_on_exit_code(transport::Transport& world, int code) {
  const transport::Deadline deadline = transport::Deadline::after(kTestEndLimit);
  int worst = code;
  for (const auto& bytes : transport::gather_bytes(world, 0, std::as_bytes(std::span(&code, 1)), deadline)) {
    int theirs = 0;
    std::memcpy(&theirs, bytes.data(), sizeof(theirs));
    worst = std::max(worst, theirs);
  }
  const auto agreed = transport::broadcast_bytes(world, 0, std::as_bytes(std::span(&worst, 1)), deadline);
  std::memcpy(&worst, agreed.data(), sizeof(worst));
  return worst;
}

}  // namespace plumbline::testing
