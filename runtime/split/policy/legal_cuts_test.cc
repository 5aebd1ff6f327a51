#include "runtime/split/policy/legal_cuts.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/error.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/split/split.h"

namespace plumbline::split {
namespace {

/// As text: '|' for a legal position, '.' for an illegal one, for 0..nodes.
std::string flags(const graph::Graph& graph) {
  std::string text;
  for (char legal : legal_cuts(graph)) text += legal ? '|' : '.';
  return text;
}

/// `storage` by value: the text form does not record memory.
std::string flags(const std::string& lines, const std::vector<int32_t>& storage = {}) {
  graph::Graph graph =
      graph::parse_graph("input %0: f32[2] = \"x\"\nbuffer %1: f32[2] = \"count\"\n" + lines + "\nreturn %2\n");
  for (size_t v = 0; v < storage.size(); ++v) graph.values[v].storage = storage[v];
  return flags(graph);
}

TEST(LegalCuts, BetweenCallsOnly) {
  EXPECT_EQ(flags("%2: f32[2] = aten::neg(%0)"), "..");
  EXPECT_EQ(flags("%2: f32[2] = aten::neg(%0)\n%3: f32[2] = aten::neg(%2)"), ".|.");
  EXPECT_EQ(flags("pipe_split\n%2: f32[2] = aten::neg(%0)\npipe_split\npipe_split\n%3: f32[2] = aten::neg(%2)\n"
                  "%4: f32[2] = aten::neg(%0)\npipe_split"),
            "....||..");
  EXPECT_EQ(flags(graph::parse_graph("input %0: f32[2] = \"x\"\nreturn %0\n")), ".");
}

TEST(LegalCuts, AWriteStaysWithWhatItChanges) {
  const std::string start = "%2: f32[2] = aten::neg(%0)\n%3: f32[2] = aten::relu(%2)\n";
  EXPECT_EQ(flags(start + "%4: f32[2] = aten::relu_(%3)\n%5: f32[2] = aten::neg(%4)", {0, 1, 2, 3, 3, 5}), ".|.|.");
  EXPECT_EQ(flags(start + "%4: f32[2] = aten::t(%2)\n%5: f32[2] = aten::relu_(%4)\n%6: f32[2] = aten::neg(%3)",
                  {0, 1, 2, 3, 2, 2, 6}),
            "....|.")
      << "through a view";
  EXPECT_EQ(flags(start + "%4: f32[2] = aten::relu_(%0)\n%5: f32[2] = aten::neg(%3)"), "...|.") << "an input";
  EXPECT_EQ(flags(start + "%4: f32[2] = aten::relu_(%0)\n%5: f32[2] = aten::neg(%0)"), ".....")
      << "an input, read again";
}

TEST(LegalCuts, AWrittenBufferHasOneStage) {
  const std::string write = "%3: f32[2] = aten::relu_(%1)\n", other = "%2: f32[2] = aten::neg(%0)\n";
  EXPECT_EQ(flags(other + write + "%4: f32[2] = aten::neg(%2)"), ".||.");
  EXPECT_EQ(
      flags(other + write + "%4: f32[2] = aten::neg(%2)\n%5: f32[2] = aten::add.Tensor(%4, %3, 1)", {0, 1, 2, 1, 4, 5}),
      ".|...")
      << "what the write left in it is read later";
  EXPECT_EQ(flags("%4: f32[2] = aten::neg(%1)\n" + other + write + "%5: f32[2] = aten::neg(%2)"), "...|.")
      << "read earlier";
  EXPECT_EQ(flags("%4: f32[2] = aten::neg(%1)\n" + other + "%5: f32[2] = aten::neg(%1)"), ".||.") << "read only";
  EXPECT_EQ(
      flags("%2: f32[2] = aten::relu_(%1)\n%3: f32[2] = aten::neg(%0)\n%4: f32[2] = aten::neg(%3)", {0, 1, 1, 3, 4}),
      "....")
      << "an output is handed over by the last stage";
}

/// Random calls that read and write few pieces of memory, which views share.
graph::Graph random_graph(std::mt19937& random) {
  std::string text = "input %0: f32[2] = \"x\"\ninput %1: f32[2] = \"y\"\nbuffer %2: f32[2] = \"count\"\n";
  std::vector<int32_t> storage = {0, 1, 2};
  int32_t memories = 3;
  for (int i = 0; i < 12; ++i) {
    const size_t next = storage.size();
    const size_t from = random() % next;
    const std::string define = "%" + std::to_string(next) + ": f32[2] = aten::", use = "%" + std::to_string(from);
    switch (random() % 8) {
      case 0:
        text += "pipe_split\n";
        break;
      case 1:
        text += define + "relu_(" + use + ")\n";
        storage.push_back(storage[from]);
        break;
      case 2:
        text += define + "t(" + use + ")\n";
        storage.push_back(storage[from]);
        break;
      default:
        text += define + "add.Tensor(" + use + ", %" + std::to_string(random() % next) + ", 1)\n";
        storage.push_back(memories++);
    }
  }
  graph::Graph graph = graph::parse_graph(text + "return %" + std::to_string(random() % storage.size()) + "\n");
  for (size_t v = 0; v < storage.size(); ++v) graph.values[v].storage = random() % 16 == 0 ? -1 : storage[v];
  return graph;
}

/// The number of stages that split() makes with markers before `positions` only; 0 if it refuses.
int stages_of(const graph::Graph& graph, const std::vector<size_t>& positions) {
  graph::Graph marked = graph;
  marked.nodes.clear();
  for (size_t p = 0; p <= graph.nodes.size(); ++p) {
    for (size_t position : positions)
      if (position == p) marked.nodes.push_back(graph::Node{});
    if (p < graph.nodes.size() && !graph.nodes[p].is_split()) marked.nodes.push_back(graph.nodes[p]);
  }
  try {
    return split(marked).num_stages();
  } catch (const InputError&) {
    return 0;
  }
}

TEST(LegalCuts, AreAcceptedBySplitEachAndAllAtOnce) {
  int legal_positions = 0, refused = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const graph::Graph graph = random_graph(random);
    SCOPED_TRACE(to_text(graph));
    const std::vector<char> legal = legal_cuts(graph);
    ASSERT_EQ(legal.size(), graph.nodes.size() + 1);
    EXPECT_FALSE(legal.back());
    std::vector<size_t> all;
    for (size_t p = 0; p < graph.nodes.size(); ++p) {
      if (graph.nodes[p].is_split()) {
        EXPECT_FALSE(legal[p]) << p;
        continue;
      }
      EXPECT_TRUE(!legal[p] || stages_of(graph, {p}) == 2) << "position " << p;
      if (legal[p]) all.push_back(p);
      legal_positions += legal[p];
      refused += !legal[p];
    }
    EXPECT_EQ(stages_of(graph, all), static_cast<int>(all.size()) + 1) << "all at once";
  }
  EXPECT_GT(legal_positions, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace plumbline::split
