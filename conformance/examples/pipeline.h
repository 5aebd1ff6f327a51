/* Executes one case as a pipeline, in one process that acts as every rank in turn. */
#pragma once

#include "stage.h"

typedef struct Pipeline Pipeline;

/* Reads the case in `folder`. NULL, with the reason in `why`, if this backend cannot run it; rejects a file that
   violates the contract. */
Pipeline* pipeline_read(Arena* arena, const char* folder, const char** why);
int pipeline_ranks(const Pipeline* pipeline);

/* Executes all steps. NULL on success, else the error. */
const char* pipeline_run(Pipeline* pipeline);

/* The results that the rank delivers, by result key. */
const Tensor* pipeline_results(const Pipeline* pipeline, int rank);
