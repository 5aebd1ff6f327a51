/* Tensors of float32 in memory and in safetensors files. */
#pragma once

#include "json.h"

typedef struct Tensor {
  const char* name;
  size_t rank; /* number of dimensions */
  size_t sizes[8];
  float* data;
  struct Tensor* next; /* in the same file */
} Tensor;

/* A tensor without data, with the sizes in `shape`; rejects another kind of value, and calls it `what`. */
Tensor tensor_form(const Json* shape, const char* what);
bool tensor_same_form(const Tensor* a, const Tensor* b);
size_t tensor_count(const Tensor* tensor);
/* The last dimension, and the number of its rows. A scalar has one row of one. */
size_t tensor_width(const Tensor* tensor);
/* A tensor of zeros with the sizes of `like`. */
Tensor* tensor_like(Arena* arena, const Tensor* like);
/* Adds `from` to `*sum`, which is initially NULL. */
void tensor_add(Arena* arena, Tensor** sum, const Tensor* from);
/* Piece `index` of `pieces` along the first dimension, as torch.tensor_split divides; not for scalars. */
Tensor* tensor_piece(Arena* arena, const Tensor* whole, size_t pieces, size_t index);

/* The F32 tensors of a file, with up to 8 dimensions; rejects a malformed file. */
const Tensor* tensors_read(Arena* arena, const char* path);
const Tensor* tensors_find(const Tensor* all, const char* name); /* NULL if there is none */
/* Writes under another name in the same folder, then renames. False if it cannot be written. */
bool tensors_write(const char* path, const Tensor* all);
