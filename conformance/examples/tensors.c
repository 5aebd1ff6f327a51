#include "tensors.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

Tensor tensor_form(const Json* shape, const char* what) {
  Tensor form = {0};
  const size_t most = (size_t)1 << 31; /* elements: far more than any case has */
  size_t count = 1;
  if (!cJSON_IsArray(shape) || json_count(shape) > 8) refuse("%s: expected a shape of up to 8 sizes", what);
  json_each (size, shape) {
    const size_t rows = form.sizes[form.rank++] = json_index(size, most, what);
    if (rows != 0 && count > most / rows) refuse("%s: a shape of more than 2^31 elements", what);
    count *= rows;
  }
  return form;
}

bool tensor_same_form(const Tensor* a, const Tensor* b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, a->rank * sizeof *a->sizes) == 0;
}

size_t tensor_count(const Tensor* tensor) {
  size_t count = 1;
  for (size_t i = 0; i < tensor->rank; ++i) count *= tensor->sizes[i];
  return count;
}

size_t tensor_width(const Tensor* tensor) { return tensor->rank ? tensor->sizes[tensor->rank - 1] : 1; }

Tensor* tensor_like(Arena* arena, const Tensor* like) {
  Tensor* tensor = arena_new(arena, sizeof(Tensor));
  tensor->rank = like->rank;
  memcpy(tensor->sizes, like->sizes, sizeof like->sizes);
  tensor->data = arena_new(arena, tensor_count(like) * sizeof(float));
  return tensor;
}

void tensor_add(Arena* arena, Tensor** sum, const Tensor* from) {
  const size_t count = tensor_count(from);
  if (!*sum) {
    *sum = tensor_like(arena, from);
    memcpy((*sum)->data, from->data, count * sizeof(float));
  } else {
    for (size_t i = 0; i < count; ++i) (*sum)->data[i] += from->data[i];
  }
}

Tensor* tensor_piece(Arena* arena, const Tensor* whole, size_t pieces, size_t index) {
  const size_t rows = whole->sizes[0], more = rows % pieces, few = rows / pieces;
  const size_t begin = index * few + (index < more ? index : more);
  const size_t row = rows ? tensor_count(whole) / rows : 0;
  Tensor* piece = arena_new(arena, sizeof(Tensor));
  *piece = *whole;
  piece->sizes[0] = few + (index < more ? 1 : 0);
  piece->data = whole->data + begin * row;
  return piece;
}

const Tensor* tensors_read(Arena* arena, const char* path) {
  size_t bytes = 0;
  const char* file = read_whole_file(arena, path, &bytes);
  uint64_t header = 0;
  if (!file || bytes < 8) refuse("%s: cannot be read, or is truncated", path);
  for (int i = 7; i >= 0; --i) header = header << 8 | (unsigned char)file[i];
  if (header > bytes - 8)
    refuse("%s: a header of %llu bytes in a file of %zu", path, (unsigned long long)header, bytes);
  char* text = arena_new(arena, header + 1);
  memcpy(text, file + 8, header);
  const Json* json = json_parse(arena, text);
  if (!cJSON_IsObject(json)) refuse("%s: its header is not a JSON object", path);
  const char* data = file + 8 + header;
  const size_t data_bytes = bytes - 8 - header;
  Tensor* all = NULL;
  json_each (item, json) {
    if (!json_is(json_get(item, "dtype"), "F32")) continue;
    const Json* offsets = json_get(item, "data_offsets");
    Tensor* tensor = arena_new(arena, sizeof(Tensor));
    *tensor = tensor_form(json_get(item, "shape"), path);
    const size_t begin = json_index(cJSON_GetArrayItem(offsets, 0), (size_t)1 << 53, path),
                 end = json_index(cJSON_GetArrayItem(offsets, 1), (size_t)1 << 53, path);
    if (end > data_bytes) refuse("%s: %s lies beyond the end of the file (truncated?)", path, item->string);
    if (begin > end || end - begin != tensor_count(tensor) * sizeof(float))
      refuse("%s: %s has another size than its shape", path, item->string);
    tensor->name = item->string;
    tensor->data = arena_new(arena, end - begin);
    memcpy(tensor->data, data + begin, end - begin); /* floats are little-endian here as in the file */
    tensor->next = all;
    all = tensor;
  }
  return all;
}

const Tensor* tensors_find(const Tensor* all, const char* name) {
  while (all && strcmp(all->name, name) != 0) all = all->next;
  return all;
}

/* Writes the header to `file`, or only counts its bytes if `file` is NULL. */
static size_t write_header(FILE* file, const Tensor* all) {
  char number[96];
  size_t size = 0, offset = 0;
#define PUT(text)                \
  do {                           \
    size += strlen(text);        \
    if (file) fputs(text, file); \
  } while (0)
  PUT("{");
  for (const Tensor* tensor = all; tensor; tensor = tensor->next) {
    PUT(tensor == all ? "\"" : ",\"");
    for (const char* c = tensor->name; *c; ++c) {
      const char one[2] = {*c, 0};
      if (*c == '"' || *c == '\\') PUT("\\");
      PUT(one);
    }
    PUT("\":{\"dtype\":\"F32\",\"shape\":[");
    for (size_t i = 0; i < tensor->rank; ++i) {
      snprintf(number, sizeof number, "%s%zu", i ? "," : "", tensor->sizes[i]);
      PUT(number);
    }
    const size_t end = offset + tensor_count(tensor) * sizeof(float);
    snprintf(number, sizeof number, "],\"data_offsets\":[%zu,%zu]}", offset, end);
    PUT(number);
    offset = end;
  }
  PUT("}");
  while (size % 8) PUT(" ");
#undef PUT
  return size;
}

bool tensors_write(const char* path, const Tensor* all) {
  Arena arena = {0};
  const char* temporary = arena_text(&arena, "%s.new", path);
  FILE* file = fopen(temporary, "wb");
  bool good = file != NULL;
  if (file) {
    const uint64_t header = write_header(NULL, all);
    for (int i = 0; i < 8; ++i) fputc((int)(header >> (8 * i) & 255), file);
    write_header(file, all);
    for (const Tensor* tensor = all; tensor; tensor = tensor->next)
      fwrite(tensor->data, sizeof(float), tensor_count(tensor), file);
    good = !ferror(file);
    good = fclose(file) == 0 && good && rename(temporary, path) == 0;
  }
  arena_free(&arena);
  return good;
}
