#include "pipeline.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64, MOST_MICROBATCHES = 4096 }; /* MOST: ranks, and stages */

typedef struct {
  int stage, microbatch;
  char what; /* F, B, I or W */
} Action;

typedef struct {
  Action* actions;
  size_t count, next;
} Rank;

/* The state of one stage for one micro-batch, from its forward to its last backward. */
typedef struct {
  const Json* graph;
  Tensor **values, **gradients;
  bool input_done;
} Run;

struct Pipeline {
  Arena* arena;
  const Json *json, *program;
  const Tensor* tensors;
  const Tensor** forms; /* by program and stage: the result of stage_check */
  Rank ranks[MOST];
  int rank_count, stages, microbatches, boundaries, parameters;
  int rank_of_stage[MOST];
  Tensor* results[MOST];
  /* The state of the current step: */
  int step;
  const Json* step_json;
  Run* runs;            /* by stage and micro-batch */
  Tensor** values;      /* by boundary and micro-batch */
  Tensor** handed_back; /* by boundary, consumer and micro-batch */
  Tensor** accumulated; /* by stage and parameter */
  Tensor** whole_grads; /* by parameter; over all steps */
};

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* Members that this reader supports; ignoring others would change the case. */
static const char* unknown_member(const Json* json) {
  static const char* const known[] = {"features",     "format", "id",     "title",  "why",       "truth",    "seed",
                                      "dtype",        "model",  "mesh",   "stages", "schedule",  "steps",    "results",
                                      "microbatches", "inputs", "target", "loss",   "gradients", "optimizer"};
  json_each (item, json) {
    bool found = cJSON_IsFalse(item); /* an unused feature */
    found = found || json_is(item, "never");
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) found = found || strcmp(item->string, known[i]) == 0;
    if (!found) return item->string;
  }
  return NULL;
}

/* The first member of an object that is not in `known`, which ends with NULL; NULL if there is none. */
static const char* member_beyond(const Json* object, const char* const* known) {
  json_each (item, object) {
    const char* const* one = known;
    while (*one && strcmp(item->string, *one) != 0) ++one;
    if (!*one) return item->string;
  }
  return NULL;
}

static const char* why_not_step(Arena* arena, const Json* step) {
  static const char* const known[] = {"kind", "target", "loss", "loss_divisor", "microbatches", NULL};
  static const char* const kinds[] = {"train", "eval", "zero_grad", "read"};
  const char* member = member_beyond(step, known);
  if (member) return arena_text(arena, "member \"%s\" of a step", member);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
    if (json_is(json_get(step, "kind"), kinds[i])) return NULL;
  return arena_text(arena, "step %s", json_text(json_get(step, "kind"), "case.json: a step's kind"));
}

static const char* why_not(Pipeline* p) {
  const Json *json = p->json, *loss = json_get(json, "loss");
  if (!cJSON_IsObject(json)) refuse("case.json: not a JSON object");
  if (!json_is(json_get(json, "format"), "plumbline-case/1")) return "another format than plumbline-case/1";
  const char* member = unknown_member(json);
  if (member) return arena_text(p->arena, "member \"%s\" of case.json", member);
  if (!json_is(json_get(json, "dtype"), "F32")) return "another element type than F32";
  if (json_has(json_get(json, "optimizer"))) return "an optimizer";
  if (!json_is(json_get(loss, "kind"), "sum") && !json_is(json_get(loss, "kind"), "mse"))
    return "another loss than sum and mse";
  static const char* const of_loss[] = {"kind", "reduction", "ignored_target", "added", NULL};
  if ((member = member_beyond(loss, of_loss))) return arena_text(p->arena, "member \"%s\" of the loss", member);
  if (json_has(json_get(loss, "ignored_target"))) return "targets that are ignored";
  if (json_count(json_get(json, "inputs")) != 1) return "several inputs";
  const Json* target = json_get(json_get(json, "target"), "dim");
  const Json* input = json_get(json_get(cJSON_GetArrayItem(json_get(json, "inputs"), 0), "chunk"), "dim");
  if (!cJSON_IsNumber(input) || json_number(input) != 0 || json_number(target) != 0)
    return "micro-batches along another dimension than 0";
  json_each (step, json_get(json, "steps")) {
    const char* why = why_not_step(p->arena, step);
    if (why) return why;
  }
  json_each (program, json_get(p->program, "programs"))
    json_each (stage, json_get(program, "stages")) {
      const char* why = stage_why_not(p->arena, stage);
      if (why) return why;
    }
  return NULL;
}

/* --- checks of a case, made once: later code relies on them ---------------------------------------------------- */

static int number_of(const Json* list, const char* name) {
  int number = 0;
  json_each (item, list) {
    if (json_is(json_get(item, "name"), name)) return number;
    ++number;
  }
  return -1;
}

static void expect_named(const Json* list, const Json* port, const char* what) {
  const char* name = json_text(json_get(port, "name"), what);
  if (number_of(list, name) < 0) refuse("%s: no value has the name %s", what, name);
}

static void check_parameters(const Pipeline* p) {
  json_each (parameter, json_get(p->program, "parameters")) {
    json_text(json_get(parameter, "name"), "program.json: a parameter's name");
    json_index(cJSON_GetArrayItem(json_get(parameter, "stages"), 0), (size_t)p->stages,
               "program.json: a parameter's stage");
  }
}

static void check_boundaries(const Pipeline* p, const Json* boundaries) {
  if (json_count(boundaries) != (size_t)p->boundaries) refuse("program.json: programs with different boundaries");
  json_each (boundary, boundaries) {
    json_text(json_get(boundary, "name"), "program.json: a boundary's name");
    json_index(json_get(boundary, "producer"), (size_t)p->stages, "program.json: a boundary's producer");
    json_each (consumer, json_get(boundary, "consumers"))
      json_index(consumer, (size_t)p->stages, "program.json: a boundary's consumer");
  }
}

static void check_programs(Pipeline* p) {
  const Json* programs = json_get(p->program, "programs");
  p->forms = arena_new(p->arena, json_count(programs) * (size_t)p->stages * sizeof *p->forms);
  const Tensor** forms = p->forms;
  json_each (program, programs) {
    const Json *stages = json_get(program, "stages"), *boundaries = json_get(program, "boundaries");
    if (json_count(stages) != (size_t)p->stages) refuse("program.json: not as many stages as in case.json");
    check_boundaries(p, boundaries);
    json_each (stage, stages) {
      *forms++ = stage_check(p->arena, stage);
      json_each (input, json_get(stage, "inputs"))
        if (json_is(json_get(input, "from"), "boundary"))
          expect_named(boundaries, input, "program.json: an input");
        else
          json_text(json_get(input, "name"), "program.json: an input");
      json_each (output, json_get(stage, "outputs"))
        if (json_is(json_get(output, "to"), "boundary"))
          expect_named(boundaries, output, "program.json: an output");
        else
          json_text(json_get(output, "name"), "program.json: an output");
      json_each (parameter, json_get(stage, "parameters"))
        expect_named(json_get(p->program, "parameters"), parameter, "program.json: a stage's parameter");
      json_each (constant, json_get(stage, "constants"))
        json_text(json_get(constant, "tensor"), "program.json: a constant");
    }
  }
}

/* Whether the step runs micro-batches. */
static bool is_batch(const Json* step) {
  return json_is(json_get(step, "kind"), "train") || json_is(json_get(step, "kind"), "eval");
}

static void check_steps(const Pipeline* p) {
  const size_t programs = json_count(json_get(p->program, "programs"));
  json_each (step, json_get(p->json, "steps")) {
    if (!is_batch(step)) continue;
    const Json* microbatches = json_get(step, "microbatches");
    if (json_count(microbatches) != (size_t)p->microbatches)
      refuse("case.json: a step with another number of micro-batches");
    json_each (microbatch, microbatches)
      json_index(json_get(microbatch, "program"), programs, "case.json: a micro-batch's program");
  }
}

/* --- the schedule ------------------------------------------------------------------------------------------------- */

/* A cell such as 2F0. */
static bool read_action(const char* cell, Action* action) {
  int used = 0;
  return sscanf(cell, "%9d%c%9d%n", &action->stage, &action->what, &action->microbatch, &used) == 3 && !cell[used] &&
         strchr("FBIW", action->what);
}

/* The parts of a stage's work on a micro-batch that an action executes: each occurs once. */
static unsigned parts_of(char what) {
  enum { FORWARD = 1, TO_INPUTS = 2, TO_WEIGHTS = 4 };
  switch (what) {
    case 'F':
      return FORWARD;
    case 'I':
      return TO_INPUTS;
    case 'W':
      return TO_WEIGHTS;
    default:
      return TO_INPUTS | TO_WEIGHTS;
  }
}

/* The reason why the schedule cannot be run; NULL if it can. Rejects a schedule of another case. */
static const char* read_schedule(Pipeline* p, char* text) {
  if (!text) refuse("schedule.csv: cannot be read");
  memset(p->rank_of_stage, -1, sizeof p->rank_of_stage);
  unsigned char* seen = arena_new(p->arena, (size_t)(p->stages * p->microbatches));
  char *row_end = NULL, *cell_end = NULL;
  for (char* row = strtok_r(text, "\r\n", &row_end); row; row = strtok_r(NULL, "\r\n", &row_end)) {
    if (p->rank_count == MOST) return "more than 64 ranks";
    Rank* rank = &p->ranks[p->rank_count];
    rank->actions = arena_new(p->arena, (strlen(row) + 1) * sizeof(Action));
    for (char* cell = strtok_r(row, ",", &cell_end); cell; cell = strtok_r(NULL, ",", &cell_end)) {
      Action* action = &rank->actions[rank->count++];
      if (!read_action(cell, action)) return arena_text(p->arena, "action %s", cell);
      if (action->stage < 0 || action->stage >= p->stages || action->microbatch < 0 ||
          action->microbatch >= p->microbatches)
        refuse("schedule.csv: %s is not an action of this case", cell);
      unsigned char* parts = &seen[action->stage * p->microbatches + action->microbatch];
      if (*parts & parts_of(action->what)) refuse("schedule.csv: %s, or a part of it, occurs twice", cell);
      *parts |= (unsigned char)parts_of(action->what);
      int* owner = &p->rank_of_stage[action->stage];
      if (*owner >= 0 && *owner != p->rank_count) return "a stage on several ranks";
      *owner = p->rank_count;
    }
    ++p->rank_count;
  }
  for (int stage = 0; stage < p->stages; ++stage)
    if (p->rank_of_stage[stage] < 0) refuse("schedule.csv: no rank has stage %d", stage);
  return NULL;
}

static const Json* read_json(Arena* arena, const char* folder, const char* name) {
  const char* path = arena_text(arena, "%s/%s", folder, name);
  const char* text = read_whole_file(arena, path, NULL);
  const Json* json = text ? json_parse(arena, text) : NULL;
  if (!json) refuse("%s: cannot be read, or is not JSON", path);
  return json;
}

Pipeline* pipeline_read(Arena* arena, const char* folder, const char** why) {
  Pipeline* p = arena_new(arena, sizeof(Pipeline));
  p->arena = arena;
  p->json = read_json(arena, folder, "case.json");
  p->program = read_json(arena, folder, "program.json");
  if ((*why = why_not(p))) return NULL;
  p->stages = (int)json_index(json_get(p->json, "stages"), MOST + 1, "case.json: stages");
  p->microbatches =
      (int)json_index(json_get(p->json, "microbatches"), MOST_MICROBATCHES + 1, "case.json: microbatches");
  if (p->stages == 0 || p->microbatches == 0) refuse("case.json: no stages, or no micro-batches");
  p->boundaries = (int)json_count(json_get(cJSON_GetArrayItem(json_get(p->program, "programs"), 0), "boundaries"));
  p->parameters = (int)json_count(json_get(p->program, "parameters"));
  check_parameters(p);
  check_programs(p);
  check_steps(p);
  if ((*why = read_schedule(p, read_whole_file(arena, arena_text(arena, "%s/schedule.csv", folder), NULL))))
    return NULL;
  p->tensors = tensors_read(arena, arena_text(arena, "%s/tensors.safetensors", folder));
  p->whole_grads = arena_new(arena, (size_t)p->parameters * sizeof(Tensor*));
  return p;
}

int pipeline_ranks(const Pipeline* p) { return p->rank_count; }
const Tensor* pipeline_results(const Pipeline* p, int rank) { return p->results[rank]; }

/* --- looking up --------------------------------------------------------------------------------------------------- */

static Run* run_of(Pipeline* p, int stage, int m) { return &p->runs[stage * p->microbatches + m]; }
static Tensor** value_of(Pipeline* p, int b, int m) { return &p->values[b * p->microbatches + m]; }
static Tensor** back_of(Pipeline* p, int b, int stage, int m) {
  return &p->handed_back[(b * p->stages + stage) * p->microbatches + m];
}

static const Json* microbatch_json(const Pipeline* p, int m) {
  return cJSON_GetArrayItem(json_get(p->step_json, "microbatches"), m);
}
static const Json* program_of(const Pipeline* p, int m) {
  return cJSON_GetArrayItem(json_get(p->program, "programs"),
                            (int)json_number(json_get(microbatch_json(p, m), "program")));
}
static const Tensor* forms_of(const Pipeline* p, int stage, int m) {
  return p->forms[(int)json_number(json_get(microbatch_json(p, m), "program")) * p->stages + stage];
}
static const Json* boundary_json(const Pipeline* p, int b, int m) {
  return cJSON_GetArrayItem(json_get(program_of(p, m), "boundaries"), b);
}
static int boundary_named(const Pipeline* p, const Json* port, int m) {
  return number_of(json_get(program_of(p, m), "boundaries"), cJSON_GetStringValue(json_get(port, "name")));
}
static int value_number(const Json* port) { return (int)json_number(json_get(port, "value")); }

/* A copy of `tensor` under a key; stage and micro-batch are -1 if they do not apply. */
static void deliver(Pipeline* p, int rank, const char* kind, int stage, int m, const char* name, const Tensor* tensor) {
  char places[2][16] = {"-", "-"};
  if (stage >= 0) snprintf(places[0], sizeof places[0], "%d", stage);
  if (m >= 0) snprintf(places[1], sizeof places[1], "%d", m);
  Tensor* copy = NULL;
  tensor_add(p->arena, &copy, tensor);
  copy->name = arena_text(p->arena, "%d/%s/%s/%s/%s", p->step, kind, places[0], places[1], name);
  copy->next = p->results[rank];
  p->results[rank] = copy;
}

/* The tensor of a file, which must have these sizes. */
static Tensor* tensor_named(Pipeline* p, const char* name, const Tensor* form) {
  const Tensor* tensor = tensors_find(p->tensors, name);
  if (!tensor) refuse("tensors.safetensors: has no %s of F32", name);
  if (!tensor_same_form(tensor, form)) refuse("tensors.safetensors: %s has another shape than in program.json", name);
  return (Tensor*)tensor;
}

/* --- actions ------------------------------------------------------------------------------------------------------ */

/* The micro-batch's piece of an input or a target, which must have these sizes. */
static Tensor* batch_piece(Pipeline* p, const char* what, int m, const Tensor* form) {
  const char* name = arena_text(p->arena, "step/%d/%s", p->step, what);
  const Tensor* whole = tensors_find(p->tensors, name);
  if (!whole || whole->rank == 0) refuse("tensors.safetensors: has no %s of F32 that can be divided", name);
  Tensor* piece = tensor_piece(p->arena, whole, (size_t)p->microbatches, (size_t)m);
  if (!tensor_same_form(piece, form)) refuse("tensors.safetensors: %s has another shape than its use", name);
  return piece;
}

/* The number that the user divides every loss of the step by. */
static float loss_divisor(const Pipeline* p) {
  const Json* divisor = json_get(p->step_json, "loss_divisor");
  return divisor ? (float)json_number(divisor) : 1;
}

/* The gradient of a loss before its division, from which the backward begins. */
static float first_gradient(const Pipeline* p, int m) {
  return (float)json_number(json_get(microbatch_json(p, m), "loss_weight")) / loss_divisor(p);
}

/* The value of an output that is a loss or a part of one: the backward begins at it. */
static float auxiliary_loss(Pipeline* p, int m, Run* run, const Json* output) {
  const Tensor scalar = {0}, *value = run->values[value_number(output)];
  if (!tensor_same_form(value, &scalar)) refuse("program.json: an output that is a loss, but no scalar");
  if (!json_is(json_get(p->step_json, "kind"), "train")) return value->data[0];
  Tensor* gradient = tensor_like(p->arena, &scalar);
  gradient->data[0] = first_gradient(p, m);
  tensor_add(p->arena, &run->gradients[value_number(output)], gradient);
  return value->data[0];
}

/* A loss that stays in its stage. */
static void local_loss(Pipeline* p, int stage, int m, Run* run, const Json* output) {
  const Tensor scalar = {0};
  Tensor* loss = tensor_like(p->arena, &scalar);
  loss->data[0] = auxiliary_loss(p, m, run, output) / loss_divisor(p);
  deliver(p, p->rank_of_stage[stage], "loss", -1, m, cJSON_GetStringValue(json_get(output, "name")), loss);
}

/* The loss of output 0; with `gradient`, also the initial gradient of the backward. */
static Tensor* loss_of(Pipeline* p, int m, const Tensor* y, Tensor** gradient) {
  const Json* loss = json_get(p->json, "loss");
  const bool squares = json_is(json_get(loss, "kind"), "mse");
  const Tensor* target = squares ? batch_piece(p, "target", m, y) : NULL;
  const float count = json_is(json_get(loss, "reduction"), "mean") ? (float)tensor_count(y) : 1;
  const float weight = first_gradient(p, m);
  const Tensor scalar = {0};
  Tensor* value = tensor_like(p->arena, &scalar);
  if (gradient) *gradient = tensor_like(p->arena, y);
  for (size_t i = 0; i < tensor_count(y); ++i) {
    const float off = target ? y->data[i] - target->data[i] : 0;
    value->data[0] += target ? off * off : y->data[i];
    if (gradient) (*gradient)->data[i] = (target ? 2 * off : 1) * weight / count;
  }
  value->data[0] /= count;
  return value;
}

/* The loss of the last stage: of output 0, and those of early stages that are added to it. */
static void whole_loss(Pipeline* p, int stage, int m, Run* run) {
  const Json* outputs = json_get(run->graph, "outputs");
  const bool trains = json_is(json_get(p->step_json, "kind"), "train");
  if (!json_is(json_get(outputs->child, "to"), "model")) refuse("program.json: the last stage has no output");
  const int first = value_number(outputs->child);
  Tensor* loss = loss_of(p, m, run->values[first], trains ? &run->gradients[first] : NULL);
  json_each (name, json_get(json_get(p->json, "loss"), "added")) {
    const Json* output = cJSON_GetArrayItem(outputs, number_of(outputs, json_text(name, "case.json: loss.added")));
    if (!json_is(json_get(output, "to"), "model")) refuse("case.json: loss.added: no output %s", name->valuestring);
    loss->data[0] += auxiliary_loss(p, m, run, output);
  }
  loss->data[0] /= loss_divisor(p);
  deliver(p, p->rank_of_stage[stage], "loss", -1, m, "loss", loss);
}

/* Whether all inputs of the stage are available. */
static bool may_forward(Pipeline* p, int stage, int m) {
  const Json* graph = cJSON_GetArrayItem(json_get(program_of(p, m), "stages"), stage);
  json_each (input, json_get(graph, "inputs"))
    if (json_is(json_get(input, "from"), "boundary") && !*value_of(p, boundary_named(p, input, m), m)) return false;
  return true;
}

static void forward(Pipeline* p, int stage, int m) {
  Run* run = run_of(p, stage, m);
  run->graph = cJSON_GetArrayItem(json_get(program_of(p, m), "stages"), stage);
  const Tensor* forms = forms_of(p, stage, m);
  const size_t count = json_count(json_get(run->graph, "values"));
  run->values = arena_new(p->arena, count * sizeof(Tensor*));
  run->gradients = arena_new(p->arena, count * sizeof(Tensor*));
  json_each (input, json_get(run->graph, "inputs")) {
    const char* name = cJSON_GetStringValue(json_get(input, "name"));
    const int value = value_number(input);
    const bool crossed = json_is(json_get(input, "from"), "boundary");
    run->values[value] = crossed ? *value_of(p, boundary_named(p, input, m), m)
                                 : batch_piece(p, arena_text(p->arena, "input/%s", name), m, &forms[value]);
    if (!tensor_same_form(run->values[value], &forms[value]))
      refuse("program.json: %s has another shape in stage %d than in its producer", name, stage);
  }
  json_each (parameter, json_get(run->graph, "parameters")) {
    if (!cJSON_IsNumber(json_get(parameter, "value"))) continue;
    const char* name = arena_text(p->arena, "parameter/%s", cJSON_GetStringValue(json_get(parameter, "name")));
    run->values[value_number(parameter)] = tensor_named(p, name, &forms[value_number(parameter)]);
  }
  json_each (constant, json_get(run->graph, "constants"))
    if (cJSON_IsNumber(json_get(constant, "value")))
      run->values[value_number(constant)] =
          tensor_named(p, cJSON_GetStringValue(json_get(constant, "tensor")), &forms[value_number(constant)]);
  stage_forward(p->arena, run->graph, forms, run->values);

  const int rank = p->rank_of_stage[stage];
  if (stage == p->stages - 1 && !cJSON_IsFalse(json_get(p->step_json, "loss"))) whole_loss(p, stage, m, run);
  json_each (output, json_get(run->graph, "outputs")) {
    Tensor* value = run->values[value_number(output)];
    const char* name = cJSON_GetStringValue(json_get(output, "name"));
    if (json_is(json_get(output, "to"), "boundary")) {
      *value_of(p, boundary_named(p, output, m), m) = value;
      deliver(p, rank, "forward", stage, m, name, value);
    } else if (json_is(json_get(output, "to"), "loss")) {
      local_loss(p, stage, m, run, output);
    } else {
      deliver(p, rank, "output", -1, m, name, value);
    }
  }
}

/* Whether every consumer has sent back the gradient of the stage's outputs. */
static bool may_backward(Pipeline* p, int stage, int m) {
  if (!run_of(p, stage, m)->graph) return false;
  for (int b = 0; b < p->boundaries; ++b) {
    const Json* boundary = boundary_json(p, b, m);
    if ((int)json_number(json_get(boundary, "producer")) != stage || !cJSON_IsTrue(json_get(boundary, "has_gradient")))
      continue;
    json_each (consumer, json_get(boundary, "consumers"))
      if (!*back_of(p, b, (int)json_number(consumer), m)) return false;
  }
  return true;
}

/* Both halves are computed at once; each is delivered only at its action. */
static void backward_to_inputs(Pipeline* p, int stage, int m) {
  Run* run = run_of(p, stage, m);
  json_each (output, json_get(run->graph, "outputs")) {
    if (!json_is(json_get(output, "to"), "boundary")) continue;
    const int b = boundary_named(p, output, m);
    const Json* boundary = boundary_json(p, b, m);
    if (!cJSON_IsTrue(json_get(boundary, "has_gradient"))) continue;
    const Json* consumers = json_get(boundary, "consumers");
    for (int i = cJSON_GetArraySize(consumers); i-- > 0;) /* from the last to the first */
      tensor_add(p->arena, &run->gradients[value_number(output)],
                 *back_of(p, b, (int)json_number(cJSON_GetArrayItem(consumers, i)), m));
  }
  stage_backward(p->arena, run->graph, run->values, run->gradients);
  run->input_done = true;
  json_each (input, json_get(run->graph, "inputs")) {
    if (!json_is(json_get(input, "from"), "boundary")) continue;
    const int b = boundary_named(p, input, m);
    if (!cJSON_IsTrue(json_get(boundary_json(p, b, m), "has_gradient"))) continue;
    Tensor* gradient = run->gradients[value_number(input)];
    if (!gradient) gradient = tensor_like(p->arena, run->values[value_number(input)]);
    *back_of(p, b, stage, m) = gradient;
    deliver(p, p->rank_of_stage[stage], "backward", stage, m, cJSON_GetStringValue(json_get(input, "name")), gradient);
  }
}

static void backward_to_weights(Pipeline* p, int stage, int m) {
  Run* run = run_of(p, stage, m);
  const Json* all = json_get(p->program, "parameters");
  json_each (parameter, json_get(run->graph, "parameters")) {
    const char* name = cJSON_GetStringValue(json_get(parameter, "name"));
    const int number = number_of(all, name);
    if (!cJSON_IsNumber(json_get(parameter, "value")) || !run->gradients[value_number(parameter)] ||
        !cJSON_IsTrue(json_get(cJSON_GetArrayItem(all, number), "requires_grad")))
      continue;
    Tensor** sum = &p->accumulated[stage * p->parameters + number];
    tensor_add(p->arena, sum, run->gradients[value_number(parameter)]);
    deliver(p, p->rank_of_stage[stage], "partial", stage, m, name, *sum);
  }
}

/* Executes the action if its inputs are available; else returns false. */
static bool act(Pipeline* p, const Action* action) {
  const int stage = action->stage, m = action->microbatch;
  if (action->what == 'F') {
    if (!may_forward(p, stage, m)) return false;
    forward(p, stage, m);
    return true;
  }
  if (!json_is(json_get(p->step_json, "kind"), "train")) return true; /* an eval step has only the F */
  if (action->what == 'W' ? !run_of(p, stage, m)->input_done : !may_backward(p, stage, m)) return false;
  if (action->what != 'W') backward_to_inputs(p, stage, m);
  if (action->what != 'I') backward_to_weights(p, stage, m);
  return true;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* Copies of a parameter are summed by ascending stage, divided once, and added to the gradients of earlier steps. */
static void finish_gradients(Pipeline* p) {
  const float divide_by = (float)json_number(json_get(json_get(p->json, "gradients"), "divide_by"));
  for (int n = 0; n < p->parameters; ++n) {
    Tensor* sum = NULL;
    for (int stage = 0; stage < p->stages; ++stage)
      if (p->accumulated[stage * p->parameters + n])
        tensor_add(p->arena, &sum, p->accumulated[stage * p->parameters + n]);
    if (!sum) continue;
    for (size_t i = 0; i < tensor_count(sum); ++i) sum->data[i] /= divide_by;
    tensor_add(p->arena, &p->whole_grads[n], sum);
  }
}

static void deliver_gradients(Pipeline* p) {
  for (int n = 0; n < p->parameters; ++n) {
    const Json* parameter = cJSON_GetArrayItem(json_get(p->program, "parameters"), n);
    const int holder = (int)json_number(cJSON_GetArrayItem(json_get(parameter, "stages"), 0));
    if (p->whole_grads[n])
      deliver(p, p->rank_of_stage[holder], "grad", -1, -1, cJSON_GetStringValue(json_get(parameter, "name")),
              p->whole_grads[n]);
  }
}

/* The ranks take turns; each executes as many actions as it can, until all have finished. */
static const char* run_schedule(Pipeline* p) {
  for (int r = 0; r < p->rank_count; ++r) p->ranks[r].next = 0;
  for (bool moved = true, done = false; !done;) {
    if (!moved) return arena_text(p->arena, "step %d: no rank can continue", p->step);
    moved = false;
    done = true;
    for (int r = 0; r < p->rank_count; ++r) {
      Rank* rank = &p->ranks[r];
      for (; rank->next < rank->count && act(p, &rank->actions[rank->next]); ++rank->next) moved = true;
      done = done && rank->next == rank->count;
    }
  }
  return NULL;
}

const char* pipeline_run(Pipeline* p) {
  const Json* steps = json_get(p->json, "steps");
  for (p->step = 0; (p->step_json = cJSON_GetArrayItem(steps, p->step)); ++p->step) {
    if (json_is(json_get(p->step_json, "kind"), "zero_grad")) {
      memset(p->whole_grads, 0, (size_t)p->parameters * sizeof(Tensor*));
      continue;
    }
    if (json_is(json_get(p->step_json, "kind"), "read")) {
      deliver_gradients(p);
      continue;
    }
    const size_t m = (size_t)p->microbatches, s = (size_t)p->stages, b = (size_t)p->boundaries;
    p->runs = arena_new(p->arena, s * m * sizeof(Run));
    p->values = arena_new(p->arena, b * m * sizeof(Tensor*));
    p->handed_back = arena_new(p->arena, b * s * m * sizeof(Tensor*));
    p->accumulated = arena_new(p->arena, s * (size_t)p->parameters * sizeof(Tensor*));
    const char* why = run_schedule(p);
    if (why) return why;
    if (json_is(json_get(p->step_json, "kind"), "train")) {
      finish_gradients(p);
      deliver_gradients(p);
    }
  }
  return NULL;
}
