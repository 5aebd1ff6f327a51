// How much memory a choice of saved values takes, and how much it computes again, without making its graphs: one joint
// graph on flat arrays, asked for many choices. What it says of a choice is what simulate_memory() says of the
// partition made for it (in autograd's order); an answer costs a few walks over the graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/partition/cut/min_cut.h"
#include "runtime/partition/partition.h"

namespace plumbline {

class PeakModel {
 public:
  /// `input` must outlive it. Runtimes are those of options, or estimated as budget.h does.
  PeakModel(const CutInput& input, const PartitionOptions& options);

  struct Answer {
    int64_t peak = 0;      ///< bytes
    double recompute = 0;  ///< runtime of the calls that run again
    bool allowed = true;   ///< nothing runs again that may not
  };
  /// `saved`: by node. What need not be saved is left out by itself, so too much may be asked for.
  Answer ask(const std::vector<char>& saved);
  /// By node, of the last answer: it runs in both halves.
  const std::vector<char>& recomputed() const { return again_; }

  /// Bytes that no choice gets below: what the largest call that must run reads and makes, and in the backward the
  /// forward's outputs beside it.
  int64_t floor() const;

  /// By node: the forward makes it, and it may be saved.
  const std::vector<char>& savable() const { return savable_; }
  /// By node: must not run again (tagged MUST_SAVE, bound to the forward, or made of an input that is overwritten).
  const std::vector<char>& forced() const { return forced_; }
  /// By node: the tensor that it is a view of, through views that read nothing else; itself where it is none.
  const std::vector<NodeIndex>& base() const { return base_; }
  /// By node: bytes that it costs to save it as the only value of its storage.
  int64_t bytes(NodeIndex node) const;
  double runtime(NodeIndex node) const { return runtime_[node]; }
  const CutInput& input() const { return input_; }

 private:
  void find_memory();
  void find_rules();
  void make_forward();
  void make_backward();
  void collect(NodeIndex node);
  void raise_getitems();
  void walk(std::span<const NodeIndex> calls, int phase);
  void hold(NodeIndex node);
  void release(NodeIndex node);

  std::span<const int32_t> storages(NodeIndex node) const {
    return std::span(storage_).subspan(storage_begin_[node], storage_begin_[node + 1] - storage_begin_[node]);
  }

  const CutInput& input_;
  const NodeIndex count_;
  // Memory. Results without a known storage get a number of their own; storages held anyway have no bytes.
  std::vector<int64_t> storage_bytes_;
  std::vector<int32_t> storage_begin_, storage_;  ///< by node: of a tensor one, of a tuple one for each result
  std::vector<NodeIndex> source_;                 ///< by node: whose memory it shares; itself where it is new
  std::vector<NodeIndex> base_;
  // Rules.
  std::vector<char> given_, savable_, forced_, stays_, drawn_, in_place_, reads_tangent_, is_getitem_, is_tuple_;
  std::vector<NodeIndex> tangents_;
  std::vector<double> runtime_;

  // Of one answer.
  std::vector<char> saved_, in_forward_, in_backward_, again_, placed_, phase_;
  std::vector<NodeIndex> forward_, backward_, pending_;
  std::vector<int32_t> last_use_;
  std::vector<int32_t> holders_;  ///< by storage and phase: values that keep it
  int64_t held_ = 0, peak_ = 0;
};

}  // namespace plumbline
