// Families of models: the entries of the zoo. Each function below gives the entries of one file.
#pragma once

#include "reference/models/zoo.h"

namespace plumbline::models {

/// One entry of the zoo: the functions behind make_model() and make_batch() of zoo.h for one name.
struct Family {
  std::string name;
  std::function<Model(reference::Dtype dtype, uint64_t seed)> model;
  std::function<Batch(reference::Dtype dtype, int rows, uint64_t seed, int step)> batch;
};

std::vector<Family> auxiliary_families();    // auxiliary.cc: losses of early stages, gradients that overflow in one
std::vector<Family> crossing_families();     // crossings.cc: gradients with shared memory or strides, composed weights
std::vector<Family> mlp_families();          // mlp.cc: chains of equal layers, real and exact
std::vector<Family> skip_families();         // skip.cc: exact chains with values that skip stages
std::vector<Family> border_families();       // borders.cc: values at borders of stages, real and exact
std::vector<Family> polynomial_families();   // polynomial.cc: polynomials of uniform leaves, for identity testing
std::vector<Family> presence_families();     // presence.cc: values that are present in some steps only
std::vector<Family> dict_families();         // dicts.cc: outputs in a dict
std::vector<Family> dimension_families();    // dimensions.cc: rows along a different dimension of each input
std::vector<Family> stage_families();        // stages.cc: where the split falls
std::vector<Family> sharing_families();      // sharing.cc: modules and parameters used several times, real and exact
std::vector<Family> gradient_families();     // gradients.cc: parameters that are frozen, unused or of other dtypes
std::vector<Family> sequence_families();     // sequence.cc: recurrent, encoder and decoder, attention, real and exact
std::vector<Family> expert_families();       // experts.cc: mixtures of experts, real and exact
std::vector<Family> image_families();        // images.cc: exact convolutions, an exact U-Net, exact running sums
std::vector<Family> multi_io_families();     // multi_io.cc: several inputs and outputs, real and exact
std::vector<Family> transformer_families();  // transformer.cc: transformer-lm
std::vector<Family> tied_families();         // tied.cc: exact-tied, its exact surrogate
std::vector<Family> resnet_families();       // resnet.cc: resnet-bn
std::vector<Family> stash_families();        // stash.cc: skips by stash and pop, real and exact
std::vector<Family> unet_families();         // unet.cc: unet

}  // namespace plumbline::models
