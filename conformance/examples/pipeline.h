/* Executes one case as a pipeline, in one process that acts as every rank in turn. */
#pragma once

#include "stage.h"

typedef struct Pipeline Pipeline;

/* Reads the exported case in `folder`. Returns NULL, with the reason in `*why`, if this backend does not support the
   case; otherwise `*why` is NULL. Calls refuse() for a file that violates the contract. The arena owns the pipeline,
   its results and the reasons. */
Pipeline* pipeline_read(Arena* arena, const char* folder, const char** why);
/* The number of ranks in the schedule. */
int pipeline_ranks(const Pipeline* pipeline);

/* Executes all steps, at most once for each pipeline. Returns NULL on success, else the error. */
const char* pipeline_run(Pipeline* pipeline);

/* The results that the rank delivers: a list linked by Tensor.next, each tensor named by its result key. NULL if there
   are none. */
const Tensor* pipeline_results(const Pipeline* pipeline, int rank);
