#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Block {
  struct Block* before;
  max_align_t data[];
} Block;

typedef struct Tree {
  struct Tree* before;
  cJSON* json;
} Tree;

void* arena_new(Arena* arena, size_t bytes) {
  Block* block = calloc(1, sizeof(Block) + bytes + 1);
  if (!block) {
    fprintf(stderr, "plumbline: no memory for %zu bytes\n", bytes);
    exit(1);
  }
  block->before = arena->last;
  arena->last = block;
  return block->data;
}

void arena_free(Arena* arena) {
  for (Tree* tree = arena->trees; tree; tree = tree->before) cJSON_Delete(tree->json);
  arena->trees = NULL;
  while (arena->last) {
    Block* before = arena->last->before;
    free(arena->last);
    arena->last = before;
  }
}

char* arena_text(Arena* arena, const char* format, ...) {
  va_list words, again;
  va_start(words, format);
  va_copy(again, words);
  const int size = vsnprintf(NULL, 0, format, words);
  va_end(words);
  char* text = arena_new(arena, (size_t)size + 1);
  vsnprintf(text, (size_t)size + 1, format, again);
  va_end(again);
  return text;
}

void refuse(const char* format, ...) {
  va_list words;
  va_start(words, format);
  fputs("plumbline: ", stderr);
  vfprintf(stderr, format, words);
  fputc('\n', stderr);
  va_end(words);
  exit(2);
}

const Json* json_parse(Arena* arena, const char* text) {
  Tree* tree = arena_new(arena, sizeof(Tree));
  tree->json = cJSON_ParseWithOpts(text, NULL, true);
  tree->before = arena->trees;
  arena->trees = tree;
  return tree->json;
}

const Json* json_get(const Json* object, const char* key) { return cJSON_GetObjectItemCaseSensitive(object, key); }
size_t json_count(const Json* list) { return (size_t)cJSON_GetArraySize(list); }
bool json_has(const Json* json) { return json && !cJSON_IsNull(json); }
double json_number(const Json* json) { return cJSON_IsNumber(json) ? json->valuedouble : 0; }

bool json_is(const Json* json, const char* text) {
  return cJSON_IsString(json) && strcmp(json->valuestring, text) == 0;
}

const char* json_text(const Json* json, const char* what) {
  if (!cJSON_IsString(json)) refuse("%s: expected a string", what);
  return json->valuestring;
}

size_t json_index(const Json* json, size_t count, const char* what) {
  const double number = cJSON_IsNumber(json) ? json->valuedouble : -1;
  if (!(number >= 0 && number < (double)count) || number != (double)(size_t)number)
    refuse("%s: expected a whole number of at least 0, below %zu", what, count);
  return (size_t)number;
}

char* read_whole_file(Arena* arena, const char* path, size_t* bytes) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  char* text = NULL;
  long size = -1;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
    text = arena_new(arena, (size_t)size);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) text = NULL;
  }
  fclose(file);
  if (bytes) *bytes = size < 0 ? 0 : (size_t)size;
  return text;
}
