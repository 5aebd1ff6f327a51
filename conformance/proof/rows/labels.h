// Labels: the type of every element in the memory of several executions at once, the whole batch and its micro-batches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/proof/rows/row_type.h"
#include "conformance/proof/rows/trace.h"

namespace plumbline::proof {

/// One tensor in all executions: first of the whole batch, then of each micro-batch.
using Executions = std::vector<const TracedTensor*>;

class Labels {
 public:
  /// `rows[m]` is the number of rows of micro-batch m. `refuse` returns a type that is not separable; its text is the
  /// cause, without the subject, the operator that reads or writes.
  Labels(std::vector<int64_t> rows, std::function<RowType(const std::string&)> refuse);

  /// The type of a value. It is not separable if the labels of the whole batch, cut to the rows of a micro-batch, are
  /// not the micro-batch's.
  RowType read(const Executions& tensors);
  /// Labels the elements of a value: as `type` says, or not separable if their sizes are not those that it asks for.
  void write(const Executions& tensors, const RowType& type);
  /// Labels an execution's input: its slices along `dim` are the rows from `first_row` on.
  void write_rows(size_t execution, const TracedTensor& tensor, int dim, int first_row);
  /// The memory of the tensors has no content any more.
  void forget(const Executions& tensors);

  /// `type` for tensors of these sizes: a replicated value that was repeated as often as there are rows has rows.
  RowType resized(const RowType& type, const Executions& tensors);

 private:
  struct Label {
    int32_t what, power;  ///< a row's number, kAnyRow or a kind of value (labels.cc); an index in powers_
  };
  struct Storage {
    size_t element_size = 0;
    std::vector<Label> labels;
  };

  std::vector<Label>* memory_of(size_t execution, const TracedTensor& tensor);
  std::vector<Label> labels_of(size_t execution, const TracedTensor& tensor);
  RowType literal(const Executions& tensors);
  RowType read_rows(const Executions& tensors, const std::vector<std::vector<Label>>& labels, const Power& power);
  bool slices(const TracedTensor& tensor, int dim, const std::vector<Label>& labels, std::vector<int32_t>& rows);
  std::string why_unfit(const Executions& tensors, const RowType& type) const;
  int number_of(const Power& power);
  std::vector<int32_t> cut(const std::vector<int32_t>& rows, size_t microbatch) const;

  std::vector<int64_t> rows_;
  std::vector<size_t> microbatch_of_;  ///< by row
  std::function<RowType(const std::string&)> refuse_;
  std::vector<std::map<int, Storage>> memory_;  ///< by execution
  std::vector<Power> powers_ = {{}};
};

/// The only dimension whose size differs between executions; -1: none; -2: several, or other numbers of dimensions.
int dim_of_rows(const Executions& tensors);

}  // namespace plumbline::proof
