// Chains of eight layers with something between them: most models of the zoo differ from a plain chain in one respect
// only, which is all that their files define. Each comes twice: real (width 16, gelu) and exact (width 8, absolute
// value).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/models/families.h"
#include "reference/models/layers.h"
#include "reference/models/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {

inline constexpr int kParts = 8;

/// How a part begins, before its linear.
enum class Opening {
  None,
  View,     ///< seen as two halves of a row, which change places
  InPlace,  ///< 2 is added to its input, in place
};

/// How a part takes a second value into the first one, before its linear.
enum class Meeting { Factor, Addend };

/// Linear (as child "fc") and activation, after the opening; [rows, width] -> the same.
class Part : public torch::nn::Module {
 public:
  Part(int64_t width, Activation activation);
  at::Tensor forward(const at::Tensor& x);
  /// `other` may be undefined: then the meeting is skipped.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& other, Meeting meeting);
  const Linear& fc() const { return *fc_; }
  Opening opening = Opening::None;

 private:
  int64_t width_;
  std::shared_ptr<Linear> fc_;
  Activation activation_;
};

/// The parts 0 to 7, each but the first of which a stage may begin with, and the other members of a model.
class Parts : public torch::nn::Module {
 public:
  Parts(int64_t width, Activation activation);

  /// Parts `first` to `last`, one after the other.
  at::Tensor chain(int first, int last, at::Tensor x);
  std::shared_ptr<Part>& part(int i) { return (*parts_)[static_cast<size_t>(i)]; }
  /// One more named layer as wide as the parts.
  void add_extra(const std::string& name);
  std::shared_ptr<Layer>& extra(const std::string& name) { return extras_.at(name); }

  const int64_t width;
  const Activation activation;
  bool is_exact() const { return activation == Activation::Abs; }

 private:
  std::shared_ptr<ChildList<Part>> parts_;
  std::map<std::string, std::shared_ptr<Layer>> extras_;
};

/// The contents of an input.
enum class Content {
  Values,      ///< [rows, width] of data
  Columns,     ///< [width, rows] of data, divided along dimension 1
  Halves,      ///< [2, width / 2, rows] of data, divided along dimension 2
  Ids,         ///< [rows] whole numbers 0 .. 7, int64
  Mask,        ///< [rows, width] of 1, one in eight of 0
  FirstMask,   ///< the same in the first batch and every second one after it, None in the others
  SecondMask,  ///< the same in the second batch and every second one after it, None in the others
  Scale,       ///< [width], whole for every micro-batch, of data
  Target,      ///< the target, as an input
};

struct Variant {
  std::string name;  ///< of the real one; the exact one has "exact-" before it
  std::function<std::vector<at::Tensor>(Parts&, const std::vector<at::Tensor>&)> forward;
  std::vector<std::pair<std::string, Content>> inputs = {{"x", Content::Values}};
  /// Extra layers.
  std::vector<std::string> extras = {};
  /// Before parameters are set.
  std::function<void(Parts&)> prepare = {};
  /// After.
  std::function<void(Parts&, reference::Dtype)> finish = {};
  /// Of the exact one.
  ExactParameters exact = {};
  bool has_target = true;
  /// The target (and output 0) is [width, rows], divided along dimension 1.
  bool target_in_columns = false;
  graph::OutputTree outputs = {};
};

/// Both families: the real one and the exact one.
std::vector<Family> twins(const Variant& variant);
Family real_twin(const Variant& variant);
Family exact_twin(const Variant& variant);

/// Half precision holds small numbers only: exact models have narrow weights there, and inputs of -1 and +1.
bool is_narrow(reference::Dtype dtype);

}  // namespace plumbline::models
