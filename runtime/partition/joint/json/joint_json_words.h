// The strings and keys of the JSON form of joint graphs, shared by its reader and its writer.
#pragma once

#include <array>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

// Indexed by JointKind, JointMark and CheckpointPolicy.
inline constexpr std::array kind_words = {"primal", "tangent", "fwd_seed", "bwd_seed",
                                          "other",  "call",    "getitem",  "get_attr"};
inline constexpr std::array mark_words = {"", "is_forward", "is_backward", "must_be_in_forward", "must_be_in_backward"};
inline constexpr std::array policy_words = {"MUST_SAVE",        "PREFER_SAVE",      "MUST_RECOMPUTE",
                                            "PREFER_RECOMPUTE", "MUST_CPU_OFFLOAD", "PREFER_CPU_OFFLOAD"};

/// A string in the list "tags" of a node, and the field that it sets.
struct Tag {
  const char* word;
  bool JointNode::* set;
};
inline constexpr std::array<Tag, 9> tag_words = {{{"pointwise", &JointNode::pointwise},
                                                  {"nondeterministic_seeded", &JointNode::seeded},
                                                  {"inplace_view", &JointNode::inplace_view},
                                                  {"data_dependent_output", &JointNode::data_dependent_output},
                                                  {"dynamic_output_shape", &JointNode::dynamic_output_shape},
                                                  {"core", &JointNode::core},
                                                  {"mutable", &JointNode::writes},
                                                  {"view", &JointNode::view},
                                                  {"impure", &JointNode::impure}}};

/// A key of a node with a bool value, and its field; a missing key is false.
struct Flag {
  const char* key;
  bool JointNode::* set;
};
inline constexpr std::array<Flag, 5> flag_words = {{{"multi_output", &JointNode::multi_output},
                                                    {"no_grad", &JointNode::no_grad},
                                                    {"epilogue_mutation", &JointNode::epilogue_mutation},
                                                    {"no_vc_check", &JointNode::no_vc_check},
                                                    {"backward_hook", &JointNode::backward_hook}}};

}  // namespace plumbline::partition
