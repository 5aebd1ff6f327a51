// Chains of eight layers with variations in between: most models of the zoo differ from a plain chain in one respect
// only, and their files define just that. Each has two versions: real (width 16, gelu) and exact (width 8, absolute
// value).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {

inline constexpr int kParts = 8;

/// How a part begins, before its linear layer.
enum class Opening {
  None,
  View,     ///< swaps the two halves of a row through a view
  InPlace,  ///< adds 2 to its input in place
};

/// How a part combines a second value with the first, before its linear layer.
enum class Meeting { Factor, Addend };

/// The opening, then linear (child "fc") and activation; [rows, width] -> the same.
class Part : public torch::nn::Module {
 public:
  Part(int64_t width, Activation activation);
  at::Tensor forward(const at::Tensor& x);
  /// If `other` is undefined, the meeting is skipped.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& other, Meeting meeting);
  const Linear& fc() const { return *fc_; }
  Opening opening = Opening::None;

 private:
  int64_t width_;
  std::shared_ptr<Linear> fc_;
  Activation activation_;
};

/// The parts 0 to 7 and the other members of a model; a stage may begin with each part except the first.
class Parts : public torch::nn::Module {
 public:
  Parts(int64_t width, Activation activation);

  /// Runs parts `first` to `last` in sequence.
  at::Tensor chain(int first, int last, at::Tensor x);
  std::shared_ptr<Part>& part(int i) { return (*parts_)[static_cast<size_t>(i)]; }
  /// Adds a named layer as wide as the parts.
  void add_extra(const std::string& name);
  std::shared_ptr<Layer>& extra(const std::string& name) { return extras_.at(name); }

  const int64_t width;
  const Activation activation;
  bool is_exact() const { return activation == Activation::Abs; }

 private:
  std::shared_ptr<ChildList<Part>> parts_;
  std::map<std::string, std::shared_ptr<Layer>> extras_;
};

/// The content of an input.
enum class Content {
  Values,      ///< [rows, width] of data
  Columns,     ///< [width, rows] of data, divided along dimension 1
  Halves,      ///< [2, width / 2, rows] of data, divided along dimension 2
  Ids,         ///< [rows] whole numbers 0 .. 7, int64
  Mask,        ///< [rows, width] of 1, with one in eight 0
  FirstMask,   ///< a Mask in the first batch and every second one after it, None in the others
  SecondMask,  ///< a Mask in the second batch and every second one after it, None in the others
  Scale,       ///< [width] of data, passed whole to every micro-batch
  Target,      ///< the target, as an input
};

struct Variant {
  std::string name;  ///< of the real version; the exact one is prefixed "exact-"
  std::function<std::vector<at::Tensor>(Parts&, const std::vector<at::Tensor>&)> forward;
  std::vector<std::pair<std::string, Content>> inputs = {{"x", Content::Values}};
  /// Extra layers.
  std::vector<std::string> extras = {};
  /// Called before parameters are set.
  std::function<void(Parts&)> prepare = {};
  /// Called after parameters are set.
  std::function<void(Parts&, reference::Dtype)> finish = {};
  /// For the exact version.
  ExactParameters exact = {};
  bool has_target = true;
  /// The target (and output 0) is [width, rows], divided along dimension 1.
  bool target_in_columns = false;
  graph::OutputTree outputs = {};
};

/// Both versions: real and exact.
std::vector<Family> twins(const Variant& variant);
Family real_twin(const Variant& variant);
Family exact_twin(const Variant& variant);

/// Half precision holds only small exact numbers: exact models then have narrow weights, and inputs of -1 and +1.
bool is_narrow(reference::Dtype dtype);

}  // namespace plumbline::models
