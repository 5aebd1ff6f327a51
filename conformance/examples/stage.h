/* One stage of an exported program: executes its op graph forward, and backward by reverse-mode differentiation.

   `stage` is a member of "stages" in program.json. A stage numbers its values: `forms`, `values` and `gradients` are
   arrays indexed by that number. */
#pragma once

#include "tensors.h"

/* The reason why this reader cannot run a stage; NULL if it can. Valid as long as the arena. */
const char* stage_why_not(Arena* arena, const Json* stage);

/* Returns the shapes of the stage's values, as tensors without data. The stage must have passed stage_why_not(). Calls
   refuse() for a stage in which a value is defined twice or used before its definition, or in which an operator's
   arguments do not fit each other or the declared shape of its result. */
const Tensor* stage_check(Arena* arena, const Json* stage);

/* Executes the nodes and stores their results in `values`. The caller has already stored the inputs, parameters and
   constants there, in the shapes of `forms`, which stage_check() returned. */
void stage_forward(Arena* arena, const Json* stage, const Tensor* forms, Tensor** values);

/* Executes the backward. The caller stores the gradients of the outputs in `gradients`, with NULL for the other values;
   the function adds the gradients of all values on which those outputs depend. */
void stage_backward(Arena* arena, const Json* stage, Tensor** values, Tensor** gradients);
