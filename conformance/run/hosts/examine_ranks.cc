#include "conformance/run/hosts/examine_ranks.h"

#include <torch/version.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>

#include "conformance/protocol/command/command_backend.h"
#include "conformance/protocol/process/process.h"
#include "conformance/report/context.h"
#include "conformance/run/hosts/launcher.h"
#include "conformance/run/hosts/rank_facts.h"
#include "conformance/run/steps.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/machine/clock_offset.h"
#include "runtime/transport/machine/own_cores.h"

namespace plumbline::conformance {
namespace {

transport::Deadline limit() { return transport::Deadline::after(std::chrono::seconds(60)); }

/// Whether this rank sees what rank 0 writes in its working folder.
bool sees_folder_of_rank_0(transport::Transport& transport) {
  std::optional<TemporaryFolder> folder;
  std::string path;  // empty: nothing can be written there
  if (transport.rank() == 0) {
    try {
      folder.emplace(std::filesystem::current_path());
      path = folder->path().string();
    } catch (const std::exception&) {
    }
  }
  path = transport::broadcast_text(transport, path, limit());
  std::error_code unreadable;
  const bool sees = std::filesystem::is_directory(path, unreadable);
  transport::barrier(transport, limit());  // before it is removed
  return sees;
}

/// Seconds for `count` messages of `bytes` from one rank to another, and an empty one back; on other ranks 0.
double seconds_for(transport::Transport& transport, int from, int to, size_t bytes, int count) {
  constexpr int64_t kTag = 0;
  const auto context = [] { return std::string("the links between ranks"); };
  std::vector<std::byte> buffer(bytes);
  const double begin = clock_seconds();
  const auto wait = [&](transport::Request request) { transport.wait(request, limit(), context); };
  if (transport.rank() == from) {
    for (int i = 0; i < count; ++i) wait(transport.isend(buffer.data(), bytes, to, kTag));
    wait(transport.irecv(nullptr, 0, to, kTag));
  } else if (transport.rank() == to) {
    for (int i = 0; i < count; ++i) wait(transport.irecv(buffer.data(), bytes, from, kTag));
    wait(transport.isend(nullptr, 0, from, kTag));
  }
  return clock_seconds() - begin;
}

/// One pair after the other, so that no two measurements share a link. Meaningful on rank `from` of each.
Link measure_link(transport::Transport& transport, int from, int to) {
  constexpr size_t kLarge = size_t{1} << 20;
  constexpr int kSmallMessages = 32, kLargeMessages = 8;
  seconds_for(transport, from, to, kLarge, 1);  // connections and buffers are made at the first message
  Link link{from, to};
  // A round trip of one small message is twice the latency.
  double round_trips = 0;
  for (int i = 0; i < kSmallMessages; ++i) round_trips += seconds_for(transport, from, to, sizeof(double), 1);
  link.latency = round_trips / kSmallMessages / 2;
  link.bandwidth =
      kLargeMessages * static_cast<double>(kLarge) / seconds_for(transport, from, to, kLarge, kLargeMessages);
  transport::barrier(transport, limit());
  return link;
}

/// On rank 0 all links, elsewhere none.
std::vector<Link> measure_links(transport::Transport& transport) {
  std::vector<Link> mine;
  for (int from = 0; from < transport.size(); ++from)
    for (int to = 0; to < transport.size(); ++to)
      if (from != to) {
        const Link link = measure_link(transport, from, to);
        if (transport.rank() == from) mine.push_back(link);
      }
  std::vector<Link> all;
  for (const std::vector<std::byte>& bytes :
       transport::gather_bytes(transport, 0, std::as_bytes(std::span(mine)), limit())) {
    all.resize(all.size() + bytes.size() / sizeof(Link));
    std::memcpy(all.data() + all.size() - bytes.size() / sizeof(Link), bytes.data(), bytes.size());
  }
  return all;
}

std::vector<RankFacts> gather_facts(transport::Transport& transport, const RankFacts& mine) {
  const std::string text = to_json(mine);
  std::vector<RankFacts> ranks;
  for (const std::vector<std::byte>& bytes :
       transport::gather_bytes(transport, 0, std::as_bytes(std::span(text)), limit()))
    ranks.push_back(read_rank_facts({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  return ranks;
}

}  // namespace

int examine_ranks(transport::Transport& transport, const std::string& host, const std::string& mpi, std::ostream& out) {
  const transport::ClockOffset clock = transport::measure_clock_offset(transport, limit());
  const bool sees_folder = sees_folder_of_rank_0(transport);
  const std::vector<RankFacts> ranks = gather_facts(
      transport,
      {host, plumbline_version(), TORCH_VERSION, mpi, transport::own_cores(), sees_folder, clock.seconds, clock.error});
  const std::vector<Link> links = measure_links(transport);
  int code = 0;
  if (transport.rank() == 0) {
    Steps steps(out);
    steps.on_its_own("ranks", [&] { return hosts_found(ranks); });
    steps.on_its_own("versions", [&] { return versions_found(ranks); });
    steps.on_its_own("folder", [&] { return folder_found(ranks); });
    steps.on_its_own("clocks", [&] { return clocks_found(ranks); });
    steps.on_its_own("cores", [&] { return cores_found(ranks); });
    steps.on_its_own("links", [&] { return links_found(ranks, links); });
    code = steps.exit_code();
  }
  return transport::agree_on(transport, code, limit());
}

int examine_launched_ranks(const std::vector<std::string>& launcher, int ranks, const std::string& program,
                           std::ostream& out) {
  ProcessOptions process;
  process.argv = launcher_words(launcher, ranks);
  process.argv.insert(process.argv.end(), {program, "doctor"});
  process.environment = rank_environment();
  process.timeout = std::chrono::minutes(10);
  process.on_output = [&](std::string_view piece, const auto&) { out << piece << std::flush; };
  const ProcessResult ended = run_process(process);
  if (!ended.could_not_start.empty()) throw InputError("--launcher: " + ended.could_not_start);
  if (ended.exit_code && !ended.timed_out) return *ended.exit_code;
  throw Error("the ranks " + describe(ended));
}

}  // namespace plumbline::conformance
