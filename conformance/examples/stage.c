#include "stage.h"

#include <math.h>

/* The operators of the exact chains of linear layers. */
static const char* const known_ops[] = {"aten::abs", "aten::add.Tensor", "aten::linear", "aten::relu",
                                        "aten::sum.dim_IntList"};

static bool is_known(const Json* op) {
  for (size_t i = 0; i < sizeof known_ops / sizeof *known_ops; ++i)
    if (json_is(op, known_ops[i])) return true;
  return false;
}

/* Whether a node sums over all dimensions, to a scalar. */
static bool sums_all(const Json* stage, const Json* arguments) {
  const int self = (int)json_number(json_get(json_get(arguments, "self"), "value"));
  const Json* shape = json_get(cJSON_GetArrayItem(json_get(stage, "values"), self), "shape");
  return json_count(json_get(arguments, "dim")) == json_count(shape) && cJSON_IsFalse(json_get(arguments, "keepdim"));
}

const char* stage_why_not(Arena* arena, const Json* stage) {
  if (json_count(json_get(stage, "buffers"))) return "buffers";
  json_each (value, json_get(stage, "values"))
    if (!json_is(json_get(value, "dtype"), "F32"))
      return arena_text(arena, "values of %s", json_text(json_get(value, "dtype"), "program.json: a dtype"));
  json_each (input, json_get(stage, "inputs")) {
    if (json_is(json_get(input, "from"), "mask")) return "masks";
    if (!cJSON_IsNumber(json_get(input, "value"))) return "an input that is None";
  }
  json_each (output, json_get(stage, "outputs"))
    if (!cJSON_IsNumber(json_get(output, "value"))) return "an output that is None";
  json_each (node, json_get(stage, "nodes")) {
    const Json *op = json_get(node, "op"), *arguments = json_get(node, "arguments");
    if (!is_known(op)) return arena_text(arena, "operator %s", json_text(op, "program.json: an op"));
    if (json_is(op, "aten::add.Tensor") && !cJSON_IsObject(json_get(arguments, "other")))
      return "aten::add.Tensor of a number";
    if (json_is(op, "aten::sum.dim_IntList") && !sums_all(stage, arguments)) return "a sum over some dimensions";
  }
  return NULL;
}

/* The number of the value that an argument refers to; -1 for null. */
static int value_of(const Json* arguments, const char* name) {
  const Json* value = json_get(json_get(arguments, name), "value");
  return cJSON_IsNumber(value) ? (int)json_number(value) : -1;
}

/* --- checks of a stage, made once: later code relies on them --------------------------------------------------- */

typedef struct {
  Tensor* forms; /* by value */
  bool* defined; /* by value */
  size_t count;
} Check;

static size_t define(const Check* check, const Json* number) {
  const size_t value = json_index(number, check->count, "program.json: a value");
  if (check->defined[value]) refuse("program.json: value %zu is defined twice", value);
  check->defined[value] = true;
  return value;
}

static const Tensor* used(const Check* check, const Json* number) {
  const size_t value = json_index(number, check->count, "program.json: a value");
  if (!check->defined[value]) refuse("program.json: value %zu is used before it is defined", value);
  return &check->forms[value];
}

static const Tensor* argument(const Check* check, const Json* node, const char* name) {
  return used(check, json_get(json_get(json_get(node, "arguments"), name), "value"));
}

static size_t size_from_end(const Tensor* form, size_t back) {
  return back <= form->rank ? form->sizes[form->rank - back] : 1;
}

/* The sizes of the operator's result for arguments of these sizes. */
static Tensor form_of_result(const Check* check, const Json* node) {
  const Json* op = json_get(node, "op");
  if (json_is(op, "aten::linear")) {
    const Tensor *x = argument(check, node, "input"), *w = argument(check, node, "weight");
    Tensor result = *x;
    if (w->rank != 2 || x->rank == 0 || w->sizes[1] == 0 || tensor_width(x) != w->sizes[1])
      refuse("program.json: aten::linear of shapes that do not fit");
    result.sizes[result.rank - 1] = w->sizes[0];
    if (json_has(json_get(json_get(json_get(node, "arguments"), "bias"), "value"))) {
      const Tensor* bias = argument(check, node, "bias");
      if (bias->rank != 1 || bias->sizes[0] != w->sizes[0]) refuse("program.json: aten::linear with another bias");
    }
    return result;
  }
  if (json_is(op, "aten::sum.dim_IntList")) return (Tensor){0};
  if (!json_is(op, "aten::add.Tensor")) return *argument(check, node, "self");
  const Tensor *a = argument(check, node, "self"), *b = argument(check, node, "other");
  Tensor result = a->rank > b->rank ? *a : *b;
  for (size_t back = 1; back <= result.rank; ++back) {
    const size_t left = size_from_end(a, back), right = size_from_end(b, back);
    if (left != right && left != 1 && right != 1) refuse("program.json: aten::add.Tensor of shapes that do not fit");
    result.sizes[result.rank - back] = left == 1 ? right : left;
  }
  return result;
}

const Tensor* stage_check(Arena* arena, const Json* stage) {
  const Json* values = json_get(stage, "values");
  const size_t count = json_count(values);
  Check check = {arena_new(arena, count * sizeof(Tensor)), arena_new(arena, count), count};
  size_t next = 0;
  json_each (value, values) check.forms[next++] = tensor_form(json_get(value, "shape"), "program.json: a shape");
  static const char* const given[] = {"inputs", "parameters", "constants"};
  for (size_t i = 0; i < sizeof given / sizeof *given; ++i)
    json_each (port, json_get(stage, given[i]))
      if (json_has(json_get(port, "value"))) define(&check, json_get(port, "value"));
  json_each (node, json_get(stage, "nodes")) {
    const Tensor form = form_of_result(&check, node);
    if (!tensor_same_form(&form, &check.forms[define(&check, cJSON_GetArrayItem(json_get(node, "results"), 0))]))
      refuse("program.json: %s has another result shape than program.json declares",
             cJSON_GetStringValue(json_get(node, "op")));
  }
  json_each (output, json_get(stage, "outputs")) used(&check, json_get(output, "value"));
  return check.forms;
}

/* --- the operators ------------------------------------------------------------------------------------------------ */

/* Where an element of `from` is used in the broadcast result at `index`. */
static size_t broadcast_from(const Tensor* from, const Tensor* result, size_t index) {
  size_t at = 0, step = 1;
  for (size_t back = 1; back <= result->rank; ++back) {
    const size_t size = result->sizes[result->rank - back], position = index % size;
    index /= size;
    if (back > from->rank) continue;
    const size_t own = from->sizes[from->rank - back];
    at += own == 1 ? 0 : position * step;
    step *= own;
  }
  return at;
}

static Tensor* add(Arena* arena, const Json* arguments, Tensor** values, const Tensor* form) {
  const Tensor *a = values[value_of(arguments, "self")], *b = values[value_of(arguments, "other")];
  const float alpha = (float)json_number(json_get(arguments, "alpha"));
  Tensor* result = tensor_like(arena, form);
  for (size_t i = 0; i < tensor_count(result); ++i)
    result->data[i] = a->data[broadcast_from(a, result, i)] + alpha * b->data[broadcast_from(b, result, i)];
  return result;
}

static Tensor* linear(Arena* arena, const Tensor* x, const Tensor* weight, const Tensor* bias) {
  const size_t in = weight->sizes[1], out = weight->sizes[0], rows = tensor_count(x) / in;
  Tensor shape = *x;
  shape.sizes[shape.rank - 1] = out;
  Tensor* y = tensor_like(arena, &shape);
  for (size_t r = 0; r < rows; ++r)
    for (size_t o = 0; o < out; ++o) {
      float sum = bias ? bias->data[o] : 0;
      for (size_t i = 0; i < in; ++i) sum += x->data[r * in + i] * weight->data[o * in + i];
      y->data[r * out + o] = sum;
    }
  return y;
}

void stage_forward(Arena* arena, const Json* stage, const Tensor* forms, Tensor** values) {
  json_each (node, json_get(stage, "nodes")) {
    const Json *op = json_get(node, "op"), *arguments = json_get(node, "arguments");
    const int result = (int)json_number(cJSON_GetArrayItem(json_get(node, "results"), 0));
    if (json_is(op, "aten::linear")) {
      const int bias = value_of(arguments, "bias");
      values[result] = linear(arena, values[value_of(arguments, "input")], values[value_of(arguments, "weight")],
                              bias < 0 ? NULL : values[bias]);
    } else if (json_is(op, "aten::add.Tensor")) {
      values[result] = add(arena, arguments, values, &forms[result]);
    } else if (json_is(op, "aten::sum.dim_IntList")) {
      const Tensor* x = values[value_of(arguments, "self")];
      values[result] = tensor_like(arena, &forms[result]);
      for (size_t i = 0; i < tensor_count(x); ++i) values[result]->data[0] += x->data[i];
    } else {
      const Tensor* x = values[value_of(arguments, "self")];
      Tensor* y = values[result] = tensor_like(arena, x);
      for (size_t i = 0; i < tensor_count(x); ++i)
        y->data[i] = json_is(op, "aten::abs") ? fabsf(x->data[i]) : fmaxf(x->data[i], 0);
    }
  }
}

static void linear_backward(Arena* arena, const Json* arguments, Tensor** values, Tensor** gradients,
                            const Tensor* dy) {
  const int input = value_of(arguments, "input"), weight = value_of(arguments, "weight"),
            bias = value_of(arguments, "bias");
  const Tensor *x = values[input], *w = values[weight];
  const size_t in = w->sizes[1], out = w->sizes[0], rows = tensor_count(x) / in;
  Tensor *dx = tensor_like(arena, x), *dw = tensor_like(arena, w);
  for (size_t r = 0; r < rows; ++r)
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < in; ++i) {
        dx->data[r * in + i] += dy->data[r * out + o] * w->data[o * in + i];
        dw->data[o * in + i] += dy->data[r * out + o] * x->data[r * in + i];
      }
  tensor_add(arena, &gradients[input], dx);
  tensor_add(arena, &gradients[weight], dw);
  if (bias < 0) return;
  Tensor* db = tensor_like(arena, values[bias]);
  for (size_t r = 0; r < rows; ++r)
    for (size_t o = 0; o < out; ++o) db->data[o] += dy->data[r * out + o];
  tensor_add(arena, &gradients[bias], db);
}

static void add_backward(Arena* arena, const Json* arguments, Tensor** values, Tensor** gradients, const Tensor* dy) {
  const float alpha = (float)json_number(json_get(arguments, "alpha"));
  const char* const names[] = {"self", "other"};
  for (int side = 0; side < 2; ++side) {
    const int value = value_of(arguments, names[side]);
    Tensor* dx = tensor_like(arena, values[value]);
    for (size_t i = 0; i < tensor_count(dy); ++i)
      dx->data[broadcast_from(dx, dy, i)] += (side ? alpha : 1) * dy->data[i];
    tensor_add(arena, &gradients[value], dx);
  }
}

static void node_backward(Arena* arena, const Json* node, Tensor** values, Tensor** gradients) {
  const Json *op = json_get(node, "op"), *arguments = json_get(node, "arguments");
  const Tensor* dy = gradients[(int)json_number(cJSON_GetArrayItem(json_get(node, "results"), 0))];
  if (!dy) return;
  if (json_is(op, "aten::linear")) {
    linear_backward(arena, arguments, values, gradients, dy);
    return;
  }
  if (json_is(op, "aten::add.Tensor")) {
    add_backward(arena, arguments, values, gradients, dy);
    return;
  }
  const int self = value_of(arguments, "self");
  const Tensor* x = values[self];
  Tensor* dx = tensor_like(arena, x);
  const bool is_sum = json_is(op, "aten::sum.dim_IntList");
  for (size_t i = 0; is_sum && i < tensor_count(x); ++i) dx->data[i] = dy->data[0];
  for (size_t i = 0; !is_sum && i < tensor_count(x); ++i) {
    const float below = json_is(op, "aten::abs") ? -dy->data[i] : 0;
    dx->data[i] = x->data[i] > 0 ? dy->data[i] : x->data[i] < 0 ? below : 0;
  }
  tensor_add(arena, &gradients[self], dx);
}

void stage_backward(Arena* arena, const Json* stage, Tensor** values, Tensor** gradients) {
  const Json* nodes = json_get(stage, "nodes");
  for (int n = cJSON_GetArraySize(nodes); n-- > 0;)
    node_backward(arena, cJSON_GetArrayItem(nodes, n), values, gradients);
}
