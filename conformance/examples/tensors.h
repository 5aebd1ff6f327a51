/* Tensors of float32 in memory and in safetensors files. Elements are contiguous and row-major. The arena owns every
   tensor that a function returns by pointer. */
#pragma once

#include "json.h"

typedef struct Tensor {
  const char* name; /* key in the file; NULL for a tensor that is in no file */
  size_t rank;      /* number of dimensions */
  size_t sizes[8];
  float* data;
  struct Tensor* next; /* in the same file */
} Tensor;

/* A tensor without data, with the sizes in `shape`. Calls refuse(), with a message that calls the value `what`, unless
   `shape` is a list of at most 8 sizes with at most 2^31 elements. */
Tensor tensor_form(const Json* shape, const char* what);
/* Whether the shapes are equal. */
bool tensor_same_form(const Tensor* a, const Tensor* b);
size_t tensor_count(const Tensor* tensor); /* number of elements */
/* The size of the last dimension; 1 for a scalar. */
size_t tensor_width(const Tensor* tensor);
/* A tensor of zeros with the sizes of `like`. */
Tensor* tensor_like(Arena* arena, const Tensor* like);
/* Adds `from` to `*sum`, which has the same shape. If `*sum` is NULL, stores a copy of `from` there. */
void tensor_add(Arena* arena, Tensor** sum, const Tensor* from);
/* Piece `index` of `pieces` along the first dimension, divided as by torch.tensor_split. Shares the data of `whole`,
   which must not be a scalar. */
Tensor* tensor_piece(Arena* arena, const Tensor* whole, size_t pieces, size_t index);

/* Reads the F32 tensors of a file as a linked list and skips those of other dtypes. Calls refuse() for a file that
   cannot be read or is malformed, and for a tensor of more than 8 dimensions. NULL if the file has no F32 tensor. */
const Tensor* tensors_read(Arena* arena, const char* path);
const Tensor* tensors_find(const Tensor* all, const char* name); /* NULL if there is none */
/* Writes the list to PATH.new, then renames that file to `path`. False on failure. */
bool tensors_write(const char* path, const Tensor* all);
