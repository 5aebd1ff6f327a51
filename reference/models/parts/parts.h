// Chains of eight layers with variations in between: most models of the zoo differ from a plain chain in one respect
// only, and their files define just that. Each variation has two versions: real (width 16, gelu) and exact (width 8,
// absolute value).
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
  View,     ///< interleaves the two halves of a row, through a view
  InPlace,  ///< adds 2 in place to the input, which the caller sees
  Turned,   ///< a layer (child "turn") as a product with the transposed input, whose gradient is transposed in memory
  Sum,      ///< the sum of each row in all of its places, so that the gradient of the input has a stride of 0
  Expand,   ///< the input is [rows, 1], and expanded to the width
  Row,      ///< adds a parameter of one row, "row": in a micro-batch of one row, both have one gradient
};

/// How a part combines a second value with the first, before its linear layer.
enum class Meeting { Factor, Addend };

/// A layer of [rows, width] as a product with the transposed value, whose gradient comes back transposed.
at::Tensor turned(const Linear& layer, const at::Tensor& x);

/// The opening, then linear (child "fc") and activation; [rows, width] -> the same.
class Part : public torch::nn::Module {
 public:
  Part(int64_t width, Activation activation);
  at::Tensor forward(const at::Tensor& x);
  /// Combines x and `other` first, unless `other` is undefined.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& other, Meeting meeting);
  const Linear& fc() const { return *fc_; }
  /// Sets how the part begins, before parameters are set.
  void begin_with(Opening opening);

 private:
  int64_t width_;
  Opening opening_ = Opening::None;
  std::shared_ptr<Linear> fc_, turn_;
  at::Tensor row_;
  Activation activation_;
};

/// The parts 0 to 7 and the extra layers of a model; a stage may begin with each part except the first.
class Parts : public torch::nn::Module {
 public:
  Parts(int64_t width, Activation activation);

  /// Runs parts `first` to `last`, both included, in sequence.
  at::Tensor chain(int first, int last, at::Tensor x);
  /// Part i, 0 to 7.
  std::shared_ptr<Part>& part(int i) { return (*parts_)[static_cast<size_t>(i)]; }
  /// Adds a layer named `name`, as wide as the parts, before parameters are set.
  void add_extra(const std::string& name);
  /// The layer that add_extra() added; throws std::out_of_range for any other name.
  std::shared_ptr<Layer>& extra(const std::string& name) { return extras_.at(name); }

  const int64_t width;
  const Activation activation;
  bool is_exact() const { return activation == Activation::Abs; }

 private:
  std::shared_ptr<ChildList<Part>> parts_;
  std::map<std::string, std::shared_ptr<Layer>> extras_;
};

/// The forward of a model without a variation: all parts in sequence.
std::vector<at::Tensor> plain(Parts& net, const std::vector<at::Tensor>& in);

/// The content of an input.
enum class Content {
  Values,       ///< [rows, width] of data
  Columns,      ///< [width, rows] of data, divided along dimension 1
  Halves,       ///< [2, width / 2, rows] of data, divided along dimension 2
  Ids,          ///< [rows] whole numbers 0 .. 7, int64
  Mask,         ///< [rows, width] of 1, with on average one in eight 0
  FirstMask,    ///< a Mask in the first batch and every second one after it, None in the others
  LaterMask,    ///< None in the first batch, a Mask in the others
  SecondMask,   ///< a Mask in the second batch and every second one after it, None in the others
  SecondSpike,  ///< [rows, width] of 3e38 in the second batch and every second one after it, of 0 in the others
  Scale,        ///< [width] of data, passed whole to every micro-batch
  Target,       ///< the target of the batch, as an input
};

/// A model's difference from the plain chain. The functions may be called from several threads, each time with a new
/// Parts.
struct Variant {
  std::string name;  ///< of the real version; that of the exact one begins with "exact-"
  std::function<std::vector<at::Tensor>(Parts&, const std::vector<at::Tensor>&)> forward;
  std::vector<std::pair<std::string, Content>> inputs = {{"x", Content::Values}};
  /// Names of extra layers.
  std::vector<std::string> extras = {};
  /// Called before the parameters are set; may be empty.
  std::function<void(Parts&)> prepare = {};
  /// Called after the parameters are set and cast; may be empty.
  std::function<void(Parts&, reference::Dtype)> finish = {};
  /// For the exact version; replaced by narrower parameters if is_narrow(dtype).
  ExactParameters exact = {};
  /// Whether the batch has a target, [rows, width].
  bool has_target = true;
  /// The target and output 0 are [width, rows], divided along dimension 1.
  bool target_in_columns = false;
  /// As in Model. Targets of outputs after the first are [rows, width].
  graph::OutputTree outputs = {};
  int compared_outputs = 1;
  graph::OutputTree targets = {};
  int auxiliary_losses = 0;
};

/// The families of both versions, the real one first; or of one version.
std::vector<Family> twins(const Variant& variant);
Family real_twin(const Variant& variant);
Family exact_twin(const Variant& variant);
/// Those of both versions of some variants, then those of the exact version of others.
std::vector<Family> families_of(const std::vector<Variant>& both, const std::vector<Variant>& exact_only);

/// Whether the dtype is bfloat16 or float16, which hold only small whole numbers: exact models then have narrow
/// weights, and inputs of -1 and +1.
bool is_narrow(reference::Dtype dtype);

}  // namespace plumbline::models
