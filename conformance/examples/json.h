/* JSON by cJSON, and memory that goes with a case. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

typedef cJSON Json;

/* Memory of one case, freed at once. */
typedef struct Arena {
  struct Block* last;
  struct Tree* trees;
} Arena;
void* arena_new(Arena* arena, size_t bytes); /* filled with zeros; ends the program when there is no memory */
void arena_free(Arena* arena);
char* arena_text(Arena* arena, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* NULL when `text` (which ends with 0) is not JSON. It goes with the arena. */
const Json* json_parse(Arena* arena, const char* text);

/* What is missing is NULL, of which everything is missing, too: cJSON's functions take it as well. */
const Json* json_get(const Json* object, const char* key);
#define json_each(item, list) for (const Json* item = (list) ? (list)->child : NULL; item; item = item->next)
size_t json_count(const Json* list);
bool json_has(const Json* json); /* neither missing nor null */
bool json_is(const Json* json, const char* text);
double json_number(const Json* json); /* 0 when it is none */

/* Ends the program with exit code 2: a file is not as the contract has it. Prints one line. */
_Noreturn void refuse(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* A required member; other kinds are rejected with a message that calls it `what`. */
const char* json_text(const Json* json, const char* what);
size_t json_index(const Json* json, size_t count, const char* what); /* a whole number from 0, below `count` */

/* Reads a whole file; NULL when that fails. `bytes` may be NULL. */
char* read_whole_file(Arena* arena, const char* path, size_t* bytes);
