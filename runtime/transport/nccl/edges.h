// Edges: this rank's communicators, one for each direction between it and another rank, each with a stream.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/schedule/lowering/rank_links.h"
#include "runtime/transport/nccl/library.h"
#include "runtime/transport/nccl/watch.h"

namespace plumbline::transport::nccl {

struct Edge {
  int peer = 0;
  bool sends = false;  ///< from this rank to the peer; otherwise from the peer
  Communicator communicator = nullptr;
  Stream stream = nullptr;

  /// The rank's number in the communicator: the sender has 0.
  int rank() const { return sends ? 0 : 1; }
};

class Edges {
 public:
  /// The references must outlive the edges. `timeout` is the limit of making one communicator, and of settle().
  Edges(const Library& library, Transport& control, Watch& watch, Clock::duration timeout);
  /// Waits up to 5 s for operations to end, then frees the communicators.
  ~Edges();
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  /// Makes both edges of each link that has none, round after round, and sends one byte over each, since NCCL connects
  /// two ranks when they use a communicator for the first time. All ranks call it with the same links. Aborts all edges
  /// if it throws: the other side of an edge may be made only halfway. Returns when all ranks have made theirs; a rank
  /// waits patiently for one that still makes others.
  void connect(const std::vector<schedule::RankLink>& links);

  /// Null if there is none.
  Edge* find(int peer, bool sends);

  /// Call with the result of every NCCL call on the edge's communicator: waits until NCCL has taken the operation,
  /// after which events may be recorded behind it. Throws Error with NCCL's text, and TimeoutError.
  void settle(const Edge& edge, Result result, const char* call);
  /// Throws Error if the communicator has failed.
  void check(const Edge& edge) const;
  /// What the stub says of a wait that did not end, as " (TEXT)": it names the operations that both ranks are at. Empty
  /// with NCCL itself, whose last words are of any edge and any time.
  std::string words_of_stub(const Edge& edge) const;

  /// Ends all operations, complete or not. The edges cannot be used any more.
  void abort() noexcept;
  bool aborted() const { return aborted_; }

 private:
  void make(const schedule::RankChannel& channel);
  UniqueId agree_on_id(const schedule::RankChannel& channel);
  void send_first_byte(const Edge& edge);
  std::string last_error(const Edge& edge) const;
  [[noreturn]] void fail(const Edge& edge, Result result, const char* call) const;

  const Library& library_;
  Transport& control_;
  Watch& watch_;
  const Clock::duration timeout_;
  std::vector<std::unique_ptr<Edge>> out_, in_;  // by peer
  std::set<schedule::RankLink> links_;           // of all ranks
  bool aborted_ = false;
};

}  // namespace plumbline::transport::nccl
