/* One case carried out as a pipeline, in one process that is every rank in turn. */
#pragma once

#include "stage.h"

typedef struct Pipeline Pipeline;

/* Reads the case in `folder`. NULL, and why not, when it cannot be run here; a file that is not as the contract has it
   is refused. */
Pipeline* pipeline_read(Arena* arena, const char* folder, const char** why);
int pipeline_ranks(const Pipeline* pipeline);

/* Carries out all steps; NULL when all went well. */
const char* pipeline_run(Pipeline* pipeline);

/* What the rank has to deliver, by result key. */
const Tensor* pipeline_results(const Pipeline* pipeline, int rank);
