// The engine over copies between memories of devices, on the stub's streams: every schedule keeps to their order.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/engine/testing/engine_test_models.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/spawn.h"
#include "runtime/transport/cuda/device_copies.h"
#include "runtime/transport/forwarding_transport.h"
#include "runtime/transport/nccl/library.h"
#include "runtime/transport/threads/threads.h"

namespace plumbline::testing {
namespace {

namespace cuda = transport::cuda;

/// Kernels run on the host here, so the host waits where a compute stream does.
class HostKernels : public transport::ForwardingTransport {
 public:
  HostKernels(transport::Transport& inner, cuda::DeviceCopies& copies) : ForwardingTransport(inner), copies_(copies) {}
  void wait(transport::Request& request, const transport::Deadline& deadline,
            const transport::WaitContext& context) override {
    inner_.wait(request, deadline, context);
    cuda::Mark mark = copies_.mark(rank());
    while (!copies_.has_passed(mark)) std::this_thread::yield();
    copies_.wait(rank(), mark);
  }

 private:
  cuda::DeviceCopies& copies_;
};

/// While it exists, with_ranks() gives its bodies threads whose memory is a device's.
class OverStreams {
 public:
  explicit OverStreams(const std::string& choice)
      : former_(set_rank_launcher({8, [choice](int ranks, const RankBody& body) {
                                     cuda::DeviceCopies copies(
                                         transport::nccl::load_library(transport::nccl::parse_library_choice(choice)),
                                         ranks);
                                     const auto run = [&](transport::Transport& transport) {
                                       HostKernels host(transport, copies);
                                       body(host);
                                     };
                                     transport::run_thread_ranks(ranks, run, &copies);
                                   }})) {}
  ~OverStreams() { set_rank_launcher(former_); }
  OverStreams(const OverStreams&) = delete;
  OverStreams& operator=(const OverStreams&) = delete;

 private:
  RankLauncher former_;
};

TEST(EngineOverStreams, EverySchedule) {
  size_t number = 0;
  for (const char* choice : {"stub:eager", "stub:late,poison"}) {
    const OverStreams over(choice);
    for (const std::string& name : schedule::schedule_names()) {
      if (!in_sample(number++, 3)) continue;
      const schedule::Schedule schedule = schedule::make_schedule(name, 4, 8);
      if (!schedule::has_backward(schedule)) continue;
      expect_like_oracle("skip", schedule, 17, /*steps=*/2);
      if (HasFailure()) return;
    }
  }
}

TEST(EngineOverStreams, OtherModels) {
  const OverStreams over("stub:late,poison");
  for (const char* kind : {"tied", "two outputs", "integers", "frozen early"})
    for (const char* name : {"interleaved-1f1b", "zb-v", "dualpipe"}) {
      expect_like_oracle(kind, schedule::make_schedule(name, 2, 4), 9);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace plumbline::testing
