/* One stage of a program: its op graph forward, and the derivative of it backward. */
#pragma once

#include "tensors.h"

/* The reason why this reader cannot run a stage; NULL when it can. */
const char* stage_why_not(Arena* arena, const Json* stage);

/* The sizes of each value of a stage that it can run. One in which a value is used before it is defined, or has sizes
   that its operator does not give, is rejected. */
const Tensor* stage_check(Arena* arena, const Json* stage);

/* Executes the nodes. `values` has a place for each value of the stage; those of inputs, parameters and constants
   are there already, and have the sizes in `forms`. */
void stage_forward(Arena* arena, const Json* stage, const Tensor* forms, Tensor** values);

/* The way back: `gradients` has those of the outputs and gets those of everything before them that has one. */
void stage_backward(Arena* arena, const Json* stage, Tensor** values, Tensor** gradients);
