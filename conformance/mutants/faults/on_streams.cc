// Mutants of a transport over streams: NCCL's, over the stub in the mode that makes the mistake certain (docs/gpu.md).
// Each adds the transport to the ranks of the run, with the fault in it.
#include "conformance/mutants/mutants.h"
#include "runtime/transport/forwarding_transport.h"
#include "runtime/transport/nccl/faults.h"
#include "runtime/transport/nccl/nccl_transport.h"

namespace plumbline::conformance {
namespace {

namespace nccl = transport::nccl;

using ChangeLibrary = nccl::Library (*)(nccl::Library library, nccl::Happened happened);
using ChangeTransport = std::unique_ptr<transport::Transport> (*)(transport::Transport& inner, nccl::Happened happened);

/// NCCL's transport, and what is around it, whose memory NCCL may access until its transport has ended.
class FaultyTransport : public transport::ForwardingTransport {
 public:
  FaultyTransport(std::unique_ptr<transport::Transport> over_nccl, std::unique_ptr<transport::Transport> around)
      : ForwardingTransport(around ? *around : *over_nccl),
        around_(std::move(around)),
        over_nccl_(std::move(over_nccl)) {}

 private:
  std::unique_ptr<transport::Transport> around_, over_nccl_;
};

Mutant on_streams(std::string name, std::string what, const char* stub, ChangeLibrary library, ChangeTransport around) {
  Mutant mutant{std::move(name), std::move(what), [=](const FaultSite& site) {
                  Fault fault;
                  fault.transport = [=](transport::Transport& inner) -> std::unique_ptr<transport::Transport> {
                    const auto happened = [site] { site.happens(); };
                    nccl::Library loaded = nccl::load_library(nccl::parse_library_choice(stub));
                    if (library != nullptr) loaded = library(std::move(loaded), happened);
                    auto over_nccl = nccl::make_nccl_transport(std::move(loaded), inner);
                    auto outer = around == nullptr ? nullptr : around(*over_nccl, happened);
                    return std::make_unique<FaultyTransport>(std::move(over_nccl), std::move(outer));
                  };
                  return fault;
                }};
  mutant.least_ranks = 2;
  return mutant;
}

Mutant hanging_on_streams(Mutant mutant) {
  mutant.hangs = true;
  return mutant;
}

}  // namespace

std::vector<Mutant> mutants_on_streams() {
  return {
      on_streams("event-wait-left-out", "no stream waits for an event, so a value is read while it arrives.",
                 "stub:late,poison", nccl::without_event_waits, nccl::with_private_receive_buffers),
      on_streams("send-freed-at-its-post", "the memory of a value is reused as soon as its send is posted.",
                 "stub:late", nullptr, nccl::with_overwritten_sends),
      hanging_on_streams(on_streams("one-stream-for-both-directions",
                                    "a rank's sends and receives share one stream, so each waits for the other.",
                                    "stub:rendezvous", nccl::with_one_stream, nullptr)),
      hanging_on_streams(on_streams("receive-smaller-than-send", "a receive takes four bytes less than its send.",
                                    "stub:rendezvous", nccl::with_short_receives, nullptr)),
      hanging_on_streams(on_streams("sends-in-another-order",
                                    "two messages of an edge are sent in another order than they are received.",
                                    "stub:rendezvous", nccl::with_swapped_sends, nullptr)),
  };
}

}  // namespace plumbline::conformance
