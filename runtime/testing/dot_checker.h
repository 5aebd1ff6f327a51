// Parses the subset of Graphviz's DOT language in which plumbline writes graphs, so that tests compare nodes and edges,
// not text: graph "name" { statements }, a statement being a node, an edge, an attribute, or a subgraph.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace plumbline::testing {

using DotAttributes = std::map<std::string, std::string>;

struct DotEdge {
  std::string from, to;
  DotAttributes attributes;
};

struct DotPicture {
  std::map<std::string, DotAttributes> nodes;
  std::map<std::string, std::vector<std::string>> members;  ///< by subgraph: the nodes named directly in it
  std::map<std::string, DotAttributes> subgraphs;
  std::vector<DotEdge> edges;
};

/// Throws std::runtime_error if `text` is not in the language, a subgraph's or a node's name appears twice, or an edge
/// names an undefined node.
class DotChecker {
 public:
  explicit DotChecker(const std::string& text) : text_(text) {}

  DotPicture read() {
    expect("digraph");
    name();
    block("");
    skip_space();
    require(at_ == text_.size(), "the end");
    for (const DotEdge& edge : picture_.edges)
      require(picture_.nodes.contains(edge.from) && picture_.nodes.contains(edge.to),
              "nodes of the edge " + edge.from + " -> " + edge.to);
    return picture_;
  }

 private:
  void block(const std::string& subgraph) {
    expect("{");
    while (!accept("}")) {
      if (accept("subgraph ")) {
        const std::string inner = name();
        require(picture_.subgraphs.emplace(inner, DotAttributes()).second, "a new subgraph");
        block(inner);
        continue;
      }
      const std::string first = name();
      if (accept("->")) {
        const std::string second = name();
        picture_.edges.push_back({first, second, attributes()});
      } else if (accept("=")) {
        picture_.subgraphs[subgraph][first] = name();
      } else if (first == "node") {
        attributes();
      } else {
        require(picture_.nodes.emplace(first, attributes()).second, "a new node, not " + first);
        picture_.members[subgraph].push_back(first);
      }
      expect(";");
    }
  }

  DotAttributes attributes() {
    DotAttributes found;
    if (!accept("[")) return found;
    do {
      const std::string key = name();
      expect("=");
      found[key] = name();
    } while (accept(","));
    expect("]");
    return found;
  }

  std::string name() {
    skip_space();
    std::string word;
    if (accept("\"")) {
      while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '\\') {
          ++at_;
          word += text_.at(at_) == 'n' ? '\n' : text_.at(at_);
        } else {
          word += text_[at_];
        }
        ++at_;
      }
      expect("\"");
      return word;
    }
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      word += text_[at_++];
    require(!word.empty(), "a name");
    return word;
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(const std::string& token) {
    skip_space();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void expect(const std::string& token) { require(accept(token), token); }
  void require(bool holds, const std::string& what) const {
    if (!holds) throw std::runtime_error("dot, at " + std::to_string(at_) + ": expected " + what);
  }

  std::string text_;
  size_t at_ = 0;
  DotPicture picture_;
};

}  // namespace plumbline::testing
