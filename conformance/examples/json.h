/* JSON through cJSON, the arena that owns the memory of a case, and refuse(), which ends the process. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

typedef cJSON Json;

/* The memory of one case: allocated piece by piece, freed at once. Initialise with {0}. */
typedef struct Arena {
  struct Block* last;
  struct Tree* trees;
} Arena;
void* arena_new(Arena* arena, size_t bytes); /* filled with zeros; exits with code 1 if memory runs out */
void arena_free(Arena* arena);               /* also frees the JSON trees; the arena can be used again */
/* A formatted string, as of printf. */
char* arena_text(Arena* arena, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* NULL if the zero-terminated `text` is not JSON or continues after it. The arena owns the result. */
const Json* json_parse(Arena* arena, const char* text);

/* NULL for a missing member, and if `object` is NULL or not an object. Keys are case-sensitive. All functions below
   accept NULL. */
const Json* json_get(const Json* object, const char* key);
#define json_each(item, list) for (const Json* item = (list) ? (list)->child : NULL; item; item = item->next)
size_t json_count(const Json* list);              /* number of items or members; 0 for NULL */
bool json_has(const Json* json);                  /* neither missing nor null */
bool json_is(const Json* json, const char* text); /* whether `json` is the string `text` */
double json_number(const Json* json);             /* 0 if `json` is not a number */

/* Reports a file that violates the contract: prints one line on stderr and exits with code 2. */
_Noreturn void refuse(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* The value of a required member. Missing members and members of another type are refused with a message that calls
   the member `what`. */
const char* json_text(const Json* json, const char* what);
size_t json_index(const Json* json, size_t count, const char* what); /* a whole number in [0, count) */

/* Reads a whole file into the arena and appends a zero byte; NULL on failure. `bytes` receives the size of the file and
   may be NULL; it stays unchanged if the file cannot be opened. */
char* read_whole_file(Arena* arena, const char* path, size_t* bytes);
