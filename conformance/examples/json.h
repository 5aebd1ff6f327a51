/* A tiny JSON reader: enough for the files of a case. All memory belongs to an arena and is freed with it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Memory of one case, freed at once. */
typedef struct Arena {
  struct Block* last;
} Arena;
void* arena_new(Arena* arena, size_t bytes); /* filled with zeros; ends the program when there is no memory */
void arena_free(Arena* arena);
char* arena_text(Arena* arena, const char* format, ...) __attribute__((format(printf, 2, 3)));

typedef enum { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT } JsonKind;

typedef struct Json {
  JsonKind kind;
  bool boolean;
  double number;
  const char* text;
  const char* key;    /* of a member of an object */
  struct Json* first; /* of the items of a list, the members of an object */
  struct Json* next;
  size_t count;
} Json;

/* NULL when `text` (which ends with 0) is not JSON. Escapes in texts: all but \u above 7f. */
const Json* json_parse(Arena* arena, const char* text);

/* Never NULL: a missing member is a null, and all members of a null are missing too. */
const Json* json_get(const Json* object, const char* key);
const Json* json_at(const Json* list, size_t index);
bool json_is(const Json* json, const char* text);

/* Ends the program with exit code 2: a file is not as the contract has it. Prints one line. */
_Noreturn void refuse(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* A required member; other kinds are rejected with a message that calls it `what`. */
const char* json_text(const Json* json, const char* what);
size_t json_index(const Json* json, size_t count, const char* what); /* a whole number from 0, below `count` */

/* Reads a whole file; NULL when that fails. `bytes` may be NULL. */
char* read_whole_file(Arena* arena, const char* path, size_t* bytes);
