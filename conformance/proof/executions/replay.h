// Replay: the terms of a micro-batch, made from those of another one without executing it.
//
// Hollow tensors (shapes/hollow_memory.h) have no numbers on which a model could branch, so it executes the same
// operators for all micro-batches of the same sizes, on other rows. A large unsplit run (prove.h, on_shapes) therefore
// executes two of them and makes the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "conformance/proof/terms/recorder.h"

namespace plumbline::proof {

class Replay {
 public:
  /// `computed`: all terms that were computed for a micro-batch; `rows`: its inputs and target, some of which may be
  /// undefined; `results`: hollow tensors that it made. The recorder, which recorded all of it, must outlive this
  /// object.
  Replay(Recorder& recorder, std::span<const Recorder::Computed> computed, std::span<const at::Tensor> rows,
         std::span<const at::Tensor> results);

  /// Makes the terms of a micro-batch with these inputs and target. False, without an effect, if they do not lie in the
  /// same tensors, with the same sizes, as those of the constructor, or if the micro-batch of the constructor chooses
  /// rows in a way that no loops describe.
  bool make(std::span<const at::Tensor> rows);
  /// Hollow tensors with the values that the micro-batch of make() has in the places of `results`.
  std::vector<at::Tensor> results() const;
  /// Notes that the micro-batch of make() computes its terms, and that it has this number.
  void note(int microbatch) const;

 private:
  /// A term of the micro-batch: one that depends on its rows, by position in entries_, or any other.
  using Reference = std::variant<size_t, TermId>;
  /// Elements of an input, among them rows.
  struct Rows {
    TermId input;
    Choice choice;
  };
  struct Operation {
    Terms::Head head;
    std::vector<Reference> operands;
  };
  struct Step {
    Reference term;
    char action;
  };
  struct Result {
    at::Tensor tensor;
    Value value;
    Reference root;
  };

  Reference reference_to(const TermId& root);
  Reference entry_for(const TermId& id, const Term& term);
  TermId now(const Reference& term) const;
  TermId moved(const Rows& rows) const;

  Recorder& recorder_;
  Terms& terms_;
  std::vector<std::optional<Value>> rows_;  ///< of the micro-batch of the constructor
  std::vector<std::variant<Rows, Operation>> entries_;
  std::unordered_map<TermId, Reference, TermIdHash> known_;
  std::vector<Step> steps_;
  std::vector<Result> results_;
  bool has_loops_ = true;
  std::map<TermId, int64_t> ahead_;  ///< by input: by how many elements the rows of make() lie behind those of rows_
  std::vector<TermId> now_;          ///< by entry: its term in the micro-batch of make()
};

}  // namespace plumbline::proof
