/* One stage of a program: executes its op graph forward and its derivative backward. */
#pragma once

#include "tensors.h"

/* The reason why this reader cannot run a stage; NULL if it can. */
const char* stage_why_not(Arena* arena, const Json* stage);

/* The sizes of each value of a stage that this reader can run. Rejects a stage in which a value is used before it is
   defined, or has other sizes than its operator's result. */
const Tensor* stage_check(Arena* arena, const Json* stage);

/* Executes the nodes. `values` has a place for each value of the stage; inputs, parameters and constants are already
   present, with the sizes in `forms`. */
void stage_forward(Arena* arena, const Json* stage, const Tensor* forms, Tensor** values);

/* The backward: `gradients` has the gradients of the outputs, and receives those of all values that they depend on. */
void stage_backward(Arena* arena, const Json* stage, Tensor** values, Tensor** gradients);
