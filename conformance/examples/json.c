#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Block {
  struct Block* before;
  max_align_t data[];
} Block;

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

typedef struct {
  Arena* arena;
  const char* at;
  int depth;
} Reader;

static void skip_space(Reader* reader) { reader->at += strspn(reader->at, " \t\r\n"); }

static bool accept(Reader* reader, const char* word) {
  skip_space(reader);
  const size_t size = strlen(word);
  if (strncmp(reader->at, word, size) != 0) return false;
  reader->at += size;
  return true;
}

/* Upper bound: up to the quote that ends a text, and the 0. */
static size_t text_bytes(const char* at) {
  size_t size = 1;
  for (; *at && *at != '"'; ++at, ++size)
    if (*at == '\\' && at[1]) ++at;
  return size;
}

/* The character of \uXXXX, from the u on; 0 when it is unsupported. */
static unsigned ascii_code(const char* at) {
  const bool four = *at == 'u' && strspn(at + 1, "0123456789abcdefABCDEF") >= 4;
  const char digits[] = {four ? at[3] : '0', four ? at[4] : '0', 0};
  return four && at[1] == '0' && at[2] == '0' && at[3] < '8' ? (unsigned)strtoul(digits, NULL, 16) : 0;
}

static const char* read_text(Reader* reader) {
  if (!accept(reader, "\"")) return NULL;
  char* text = arena_new(reader->arena, text_bytes(reader->at));
  size_t size = 0;
  while (*reader->at != '"') {
    char c = *reader->at;
    if ((unsigned char)c < 0x20) return NULL; /* also the end of the text */
    ++reader->at;
    if (c == '\\') {
      static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
      const char* name = *reader->at ? strchr(names, *reader->at) : NULL;
      const unsigned code = ascii_code(reader->at);
      if (name) {
        c = meant[name - names];
        ++reader->at;
      } else if (code > 0) {
        c = (char)code;
        reader->at += 5;
      } else {
        return NULL;
      }
    }
    text[size++] = c;
  }
  ++reader->at;
  return text;
}

static Json* read_value(Reader* reader);

static bool read_items(Reader* reader, Json* parent, const char* end) {
  Json** place = &parent->first;
  if (accept(reader, end)) return true;
  do {
    const char* key = NULL;
    if (parent->kind == JSON_OBJECT && (!(key = read_text(reader)) || !accept(reader, ":"))) return false;
    Json* item = read_value(reader);
    if (!item) return false;
    item->key = key;
    *place = item;
    place = &item->next;
    ++parent->count;
  } while (accept(reader, ","));
  return accept(reader, end);
}

static Json* read_value(Reader* reader) {
  Json* json = arena_new(reader->arena, sizeof(Json));
  bool good = ++reader->depth < 100;
  if (good && accept(reader, "{")) {
    json->kind = JSON_OBJECT;
    good = read_items(reader, json, "}");
  } else if (good && accept(reader, "[")) {
    json->kind = JSON_LIST;
    good = read_items(reader, json, "]");
  } else if (good && accept(reader, "null")) {
    json->kind = JSON_NULL;
  } else if (good && (accept(reader, "true") || accept(reader, "false"))) {
    json->kind = JSON_BOOL;
    json->boolean = reader->at[-2] == 'u'; /* true, and not false */
  } else if (good && *reader->at == '"') {
    json->kind = JSON_TEXT;
    good = (json->text = read_text(reader)) != NULL;
  } else if (good) {
    char* end = NULL;
    json->kind = JSON_NUMBER;
    json->number = strtod(reader->at, &end);
    good = end != reader->at;
    reader->at = end;
  }
  --reader->depth;
  return good ? json : NULL;
}

const Json* json_parse(Arena* arena, const char* text) {
  Reader reader = {arena, text, 0};
  const Json* json = read_value(&reader);
  skip_space(&reader);
  return json && *reader.at == 0 ? json : NULL;
}

static const Json missing = {JSON_NULL, false, 0, "", NULL, NULL, NULL, 0};

const Json* json_get(const Json* object, const char* key) {
  if (object->kind == JSON_OBJECT)
    for (const Json* item = object->first; item; item = item->next)
      if (strcmp(item->key, key) == 0) return item;
  return &missing;
}

const Json* json_at(const Json* list, size_t index) {
  const Json* item = list->first;
  while (item && index-- > 0) item = item->next;
  return item ? item : &missing;
}

bool json_is(const Json* json, const char* text) { return json->kind == JSON_TEXT && strcmp(json->text, text) == 0; }

const char* json_text(const Json* json, const char* what) {
  if (json->kind != JSON_TEXT) refuse("%s: expected a text", what);
  return json->text;
}

size_t json_index(const Json* json, size_t count, const char* what) {
  const double number = json->kind == JSON_NUMBER ? json->number : -1;
  if (!(number >= 0 && number < (double)count) || number != (double)(size_t)number)
    refuse("%s: expected a whole number from 0, below %zu", what, count);
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
