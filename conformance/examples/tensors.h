/* Tensors of float32 in memory and in safetensors files. */
#pragma once

#include "json.h"

typedef struct Tensor {
  const char* name;
  size_t rank; /* number of dimensions */
  size_t sizes[8];
  float* data;
  struct Tensor* next; /* of those in one file */
} Tensor;

/* A tensor without data, of the sizes in a list; another kind of list is rejected, and called `what`. */
Tensor tensor_form(const Json* shape, const char* what);
bool tensor_same_form(const Tensor* a, const Tensor* b);
size_t tensor_count(const Tensor* tensor);
/* The last dimension, and the number of its rows. A scalar has one row of one. */
size_t tensor_width(const Tensor* tensor);
/* With the sizes of `like`; zeros. */
Tensor* tensor_like(Arena* arena, const Tensor* like);
/* Adds `from` to `*sum`, which begins as NULL. */
void tensor_add(Arena* arena, Tensor** sum, const Tensor* from);
/* The rows of piece `index` of `pieces`, along the first dimension, as torch.tensor_split has them; not for scalars. */
Tensor* tensor_piece(Arena* arena, const Tensor* whole, size_t pieces, size_t index);

/* Those of a file that are F32, of any number of dimensions up to 8; any other file is rejected. */
const Tensor* tensors_read(Arena* arena, const char* path);
const Tensor* tensors_find(const Tensor* all, const char* name); /* NULL when there is none */
/* Under another name in the same folder, then renamed. False when it cannot be written. */
bool tensors_write(const char* path, const Tensor* all);
