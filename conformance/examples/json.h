/* JSON by cJSON, and the memory of a case. */
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
void* arena_new(Arena* arena, size_t bytes); /* filled with zeros; exits if memory runs out */
void arena_free(Arena* arena);
char* arena_text(Arena* arena, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* NULL if `text` (which ends with 0) is not JSON. The arena owns the result. */
const Json* json_parse(Arena* arena, const char* text);

/* NULL for a missing member, and for any member of NULL, which cJSON's functions accept too. */
const Json* json_get(const Json* object, const char* key);
#define json_each(item, list) for (const Json* item = (list) ? (list)->child : NULL; item; item = item->next)
size_t json_count(const Json* list);
bool json_has(const Json* json); /* neither missing nor null */
bool json_is(const Json* json, const char* text);
double json_number(const Json* json); /* 0 if it is not a number */

/* Prints one line and exits with code 2: a file violates the contract. */
_Noreturn void refuse(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* A required member of that kind; rejects others with a message that calls it `what`. */
const char* json_text(const Json* json, const char* what);
size_t json_index(const Json* json, size_t count, const char* what); /* a whole number of at least 0, below `count` */

/* Reads a whole file; NULL on failure. `bytes` may be NULL. */
char* read_whole_file(Arena* arena, const char* path, size_t* bytes);
