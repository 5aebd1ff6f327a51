#include "runtime/partition/cut/min_bytes.h"

#include <algorithm>
#include <limits>

#include "runtime/error.h"
#include "runtime/partition/cut/halves.h"
#include "runtime/partition/flow/max_flow.h"

namespace plumbline::partition {
namespace {

/// How a node can be obtained in the backward, before storages are considered.
enum class Way : uint8_t {
  Given,      ///< an input of the forward, free to save
  Lost,       ///< an input that is overwritten before the backward
  Free,       ///< in the backward anyway: tangents, constants
  Backward,   ///< can only be computed in the backward
  Forbidden,  ///< must not be recomputed
  Again       ///< may be recomputed
};

class MinBytes {
 public:
  explicit MinBytes(const CutInput& input)
      : graph_(input.graph),
        edges_(input.edges),
        ops_(input.ops),
        policy_(input.policy),
        halves_(halves_of(input)),
        count_(static_cast<NodeIndex>(graph_.nodes.size())),
        ways_(graph_.nodes.size()),
        needed_(graph_.nodes.size(), 0) {}

  CutResult cut() {
    for (NodeIndex i = 0; i < count_; ++i) ways_[i] = way(i);
    settle_storages();
    find_needed();
    build();
    return solve();
  }

 private:
  bool is_random(NodeIndex i) const { return ops_.random[i] || draws_random_numbers(graph_.nodes[i]); }
  /// Whether the policy forbids recomputing it.
  bool too_expensive_to_recompute(NodeIndex i) const { return is_random(i) || ops_.compute_intensive[i]; }

  Way way(NodeIndex i) const {
    const JointNode& node = graph_.nodes[i];
    switch (node.kind) {
      case JointKind::Tangent:
      case JointKind::BackwardSeed:
      case JointKind::GetAttr:
        return Way::Free;
      case JointKind::Primal:
        return policy_.overwritten(ops_.facts[i]) ? Way::Lost : Way::Given;
      case JointKind::ForwardSeed:
      case JointKind::OtherInput:
        return Way::Given;
      case JointKind::GetItem:
      case JointKind::Call:
        break;
    }
    if (halves_.only_backward[i]) return Way::Backward;
    if (runs_once(node)) return Way::Forbidden;
    if (must_recompute(node) || !halves_.in_forward[i] || node.kind == JointKind::GetItem) return Way::Again;
    return too_expensive_to_recompute(i) ? Way::Forbidden : Way::Again;
  }

  bool can_be_saved(NodeIndex i) const {
    const JointNode& node = graph_.nodes[i];
    return (node.out.kind == JointResult::Kind::Tensor || node.out.kind == JointResult::Kind::Scalar) &&
           !must_recompute(node);
  }

  // --- storages ----------------------------------------------------------------------------------------------------
  /// Finds for each storage its base, the views made from it alone, and whether the base or some of its views are to be
  /// saved.
  void settle_storages() {
    const size_t storages = graph_.storage_bytes.size();
    base_.assign(storages, kNoNode);
    must_save_.assign(storages, 0);
    within_.assign(count_, -1);
    covered_.assign(count_, 0);
    for (NodeIndex i = 0; i < count_; ++i) {
      const JointNode& node = graph_.nodes[i];
      const int32_t storage = node.out.kind == JointResult::Kind::Tensor ? node.out.storage : -1;
      const bool tuple = node.out.kind == JointResult::Kind::Tuple;
      if (storage >= 0 && base_[storage] == kNoNode) {
        base_[storage] = within_[i] = i;
      } else if ((storage >= 0 || tuple) && (node.kind == JointKind::Call || node.kind == JointKind::GetItem)) {
        // A MUST_SAVE tag on a view applies to its storage; the view itself may be recomputed.
        const bool again = ways_[i] == Way::Again || ways_[i] == Way::Backward ||
                           (node.recompute == CheckpointPolicy::MustSave && !must_be_in_forward(node) &&
                            !has_effects(node) && !too_expensive_to_recompute(i));
        const NodeIndex base = again ? common_base(i) : kNoNode;
        if (base != kNoNode && lies_in(node.out, graph_.nodes[base].out.storage)) {
          within_[i] = base;
          if (ways_[i] == Way::Forbidden) ways_[i] = Way::Again;
        }
      }
      if (within_[i] == kNoNode) continue;
      if (within_[i] != i)
        for (const NodeIndex input : edges_.inputs(i)) covered_[i] |= within_[input] == within_[i] && covered_[input];
      if (tuple || must_recompute(node)) continue;
      if (node.recompute == CheckpointPolicy::MustSave) must_save_[storage] = 1;
      if (covered_[i]) continue;
      covered_[i] = 1;
      if (within_[i] != i && ways_[i] == Way::Again) tops_.push_back(i);
    }
    // The base comes first in its storage, but a later view may carry the tag.
    for (size_t s = 0; s < storages; ++s)
      if (must_save_[s] && ways_[base_[s]] == Way::Again && can_be_saved(base_[s])) ways_[base_[s]] = Way::Forbidden;
  }

  /// Whether all tensors of the result lie in `storage`.
  static bool lies_in(const JointResult& out, int32_t storage) {
    if (out.kind == JointResult::Kind::Tuple)
      return std::ranges::all_of(out.items, [&](const JointResult& item) { return lies_in(item, storage); });
    return out.kind == JointResult::Kind::Tensor && out.storage == storage;
  }

  /// The base from whose storage all inputs are made (symbolic scalars aside); kNoNode if there is none.
  NodeIndex common_base(NodeIndex i) const {
    NodeIndex base = kNoNode;
    for (const NodeIndex input : edges_.inputs(i)) {
      if (graph_.nodes[input].out.kind == JointResult::Kind::Scalar) continue;
      if (within_[input] == kNoNode || (base != kNoNode && within_[input] != base)) return kNoNode;
      base = within_[input];
    }
    return base;
  }

  /// Whether it is a view that is saved in place of its base.
  bool is_top(NodeIndex i) const { return std::binary_search(tops_.begin(), tops_.end(), i); }

  // --- the network -------------------------------------------------------------------------------------------------
  /// Everything reachable from the backward's outputs, stopping at inputs of the forward and at nodes that must not be
  /// recomputed.
  void find_needed() {
    for (const NodeIndex output : graph_.backward_outputs())
      if (output != kNoNode) needed_[output] = 1;
    for (NodeIndex i = count_ - 1; i >= 0; --i) {
      if (halves_.stays_in_backward[i]) needed_[i] = 1;
      if (!needed_[i] || ways_[i] == Way::Forbidden) continue;
      for (const NodeIndex input : edges_.inputs(i)) needed_[input] = 1;
    }
  }

  int new_vertex(NodeIndex of) {
    node_of_vertex_.push_back(of);
    return static_cast<int>(node_of_vertex_.size()) - 1;
  }

  /// Adds the priced edge between computing `node` and its users; `from` is the source if it cannot be recomputed.
  void price(FlowNetwork::Vertex from, FlowNetwork::Vertex to, NodeIndex node) {
    const JointResult& out = graph_.nodes[node].out;
    int64_t bytes = 0;
    if (out.kind == JointResult::Kind::Tensor)
      bytes = (out.storage >= 0 ? graph_.storage_bytes[out.storage] : out.bytes) * scale_;
    else
      bytes = 1;
    edge(from, to, bytes);
    priced_.push_back({from, to, node});
  }
  void edge(FlowNetwork::Vertex from, FlowNetwork::Vertex to, int64_t capacity) {
    arcs_.push_back({from, to, capacity});
  }

  void build() {
    constexpr int64_t kUnbounded = FlowNetwork::kUnbounded;
    choose_scale();
    new_vertex(kNoNode);  // source
    new_vertex(kNoNode);  // sink
    in_.assign(count_, -1);
    out_.assign(count_, -1);
    std::vector<char> free_storage = storages_of_inputs();
    for (NodeIndex i = 0; i < count_; ++i) {
      if (!needed_[i]) continue;
      const int32_t storage = graph_.nodes[i].out.kind == JointResult::Kind::Tensor ? graph_.nodes[i].out.storage : -1;
      out_[i] = new_vertex(i);
      const bool made_of_base = within_[i] != kNoNode && within_[i] != i;
      const bool stands_for_itself = can_be_saved(i) && !made_of_base;
      switch (ways_[i]) {
        case Way::Given:
          in_[i] = kSource;
          priced_.push_back({kSource, out_[i], i});
          break;
        case Way::Lost:
          in_[i] = kSource;
          edge(kSource, out_[i], kUnbounded);
          break;
        case Way::Free:
        case Way::Backward:
          in_[i] = out_[i];
          break;
        case Way::Forbidden:
          in_[i] = kSource;
          if (!stands_for_itself)
            edge(kSource, out_[i], kUnbounded);
          else if (storage >= 0 && free_storage[storage])
            priced_.push_back({kSource, out_[i], i});
          else
            price(kSource, out_[i], i);
          break;
        case Way::Again:
          in_[i] = stands_for_itself ? new_vertex(i) : out_[i];
          if (stands_for_itself && storage >= 0 && free_storage[storage])
            priced_.push_back({in_[i], out_[i], i});
          else if (stands_for_itself)
            price(in_[i], out_[i], i);
          break;
      }
      if (made_of_base && is_top(i)) {
        // The base cannot be saved: this view's inputs are placed before the edge that the topmost views share.
        in_[i] = hub_of(i);
        edge(hub_out_, out_[i], kUnbounded);
      }
      if (in_[i] != kSource)
        for (const NodeIndex input : edges_.inputs(i)) edge(out_[input], in_[i], kUnbounded);
      if (halves_.stays_in_backward[i]) edge(in_[i], kSink, kUnbounded);
    }
    for (const NodeIndex output : graph_.backward_outputs())
      if (output != kNoNode) edge(out_[output], kSink, kUnbounded);
  }

  /// The vertex before the shared edge of this view's storage; sets hub_out_ to the vertex after it.
  FlowNetwork::Vertex hub_of(NodeIndex view) {
    const int32_t storage = graph_.nodes[view].out.storage;
    if (hubs_.empty()) hubs_.resize(graph_.storage_bytes.size(), {-1, -1});
    Hub& hub = hubs_[storage];
    if (hub.out < 0) {
      hub.out = new_vertex(view);
      hub.in = must_save_[storage] ? kSource : new_vertex(view);
      price(hub.in, hub.out, view);
    } else {
      priced_.push_back({hub.in, hub.out, view});
    }
    hub_out_ = hub.out;
    return hub.in;
  }

  std::vector<char> storages_of_inputs() const {
    std::vector<char> free(graph_.storage_bytes.size(), 0);
    for (NodeIndex i = 0; i < count_ && graph_.nodes[i].is_input(); ++i)
      if (ways_[i] == Way::Given && graph_.nodes[i].out.storage >= 0) free[graph_.nodes[i].out.storage] = 1;
    return free;
  }

  /// Scales bytes so that all scalars together count less than one byte.
  void choose_scale() {
    int64_t bytes = 1, scalars = 0;
    for (const int64_t each : graph_.storage_bytes) bytes += each;
    for (NodeIndex i = 0; i < count_; ++i) {
      const JointResult& out = graph_.nodes[i].out;
      if (needed_[i] && out.kind == JointResult::Kind::Scalar) ++scalars;
      if (out.kind == JointResult::Kind::Tensor && out.storage < 0) bytes += out.bytes;
    }
    scale_ = std::clamp<int64_t>(std::numeric_limits<int64_t>::max() / 64 / bytes, 1, scalars + 1);
  }

  // --- the result --------------------------------------------------------------------------------------------------
  CutResult solve() const {
    FlowNetwork network(static_cast<int>(node_of_vertex_.size()));
    network.reserve(arcs_.size());
    for (const Arc& arc : arcs_)
      if (arc.from != arc.to) network.add_edge(arc.from, arc.to, arc.capacity);
    const FlowNetwork::Cut cut = network.min_cut(kSource, kSink);
    if (cut.unbounded) refuse(cut.path);
    CutResult result;
    for (const Priced& each : priced_)
      if (!cut.sink_side[each.from] && cut.sink_side[each.to] && cut.sink_side[out_[each.node]])
        result.saved.push_back(each.node);
    std::sort(result.saved.begin(), result.saved.end());
    for (NodeIndex i = 0; i < count_; ++i)
      if (ways_[i] == Way::Forbidden) result.banned.push_back(i);
    return result;
  }

  [[noreturn]] void refuse(const std::vector<FlowNetwork::Vertex>& path) const {
    std::string chain;
    NodeIndex before = kNoNode;
    for (const FlowNetwork::Vertex vertex : path) {
      const NodeIndex node = node_of_vertex_[vertex];
      if (node == kNoNode || node == before) continue;
      chain += (before == kNoNode ? "'" : " -> '") + graph_.nodes[node].name + "' (" + why(node) + ")";
      before = node;
    }
    throw InputError(
        "no partition with mode bytes: the backward needs a value that can be neither saved nor recomputed: " + chain);
  }

  std::string why(NodeIndex i) const {
    const JointNode& node = graph_.nodes[i];
    switch (ways_[i]) {
      case Way::Given:
        return "an input";
      case Way::Lost:
        return "cannot be saved because it is overwritten after the forward";
      case Way::Free:
        return "always available";
      case Way::Backward:
        return "only the backward can compute it";
      case Way::Forbidden:
      case Way::Again:
        break;
    }
    const std::string save = must_recompute(node)                        ? "is tagged to be recomputed"
                             : node.out.kind == JointResult::Kind::Tuple ? "has several results"
                                                                         : "is a view of a value that cannot be";
    const std::string again = node.recompute == CheckpointPolicy::MustSave ? "is tagged MUST_SAVE"
                              : node.mark == JointMark::MustBeInForward    ? "must be in the forward"
                              : node.writes                                ? "writes its argument"
                              : has_effects(node)                          ? "has effects"
                              : is_random(i)                               ? "is random"
                                                                           : "is compute-intensive";
    return "cannot be saved because it " + save +
           (ways_[i] == Way::Forbidden ? ", cannot be recomputed because it " + again : "");
  }

  static constexpr FlowNetwork::Vertex kSource = 0, kSink = 1;
  struct Arc {
    FlowNetwork::Vertex from, to;
    int64_t capacity;
  };
  struct Priced {
    FlowNetwork::Vertex from, to;
    NodeIndex node;
  };
  struct Hub {
    FlowNetwork::Vertex in, out;
  };

  const JointGraph& graph_;
  const JointEdges& edges_;
  const OpClasses& ops_;
  const Policy& policy_;
  const Halves halves_;
  const NodeIndex count_;
  std::vector<Way> ways_;
  std::vector<char> needed_;

  std::vector<NodeIndex> base_;    ///< by storage
  std::vector<char> must_save_;    ///< by storage
  std::vector<NodeIndex> within_;  ///< by node: its base, if made of it alone (a base is its own)
  std::vector<char> covered_;      ///< by node: whether it, or a node of its storage that it is made of, can be saved
  std::vector<NodeIndex> tops_;    ///< ascending

  int64_t scale_ = 1;
  std::vector<FlowNetwork::Vertex> in_, out_;  ///< by node: for needed_ ones
  std::vector<NodeIndex> node_of_vertex_;
  std::vector<Arc> arcs_;
  std::vector<Priced> priced_;
  std::vector<Hub> hubs_;  ///< by storage
  FlowNetwork::Vertex hub_out_ = -1;
};

}  // namespace

CutResult min_bytes_cut(const CutInput& input) { return MinBytes(input).cut(); }

}  // namespace plumbline::partition
