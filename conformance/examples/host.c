/* An example of a backend for plumbline, to copy: plain C, no MPI, one process that acts as every rank in turn. It
   supports the cases whose stages are chains of linear layers in F32, and declines all others.

     host describe
     host plan --job J
     host run --job J --out D

   conformance/INTERPRETING.md is the contract. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline.h"

static int describe(void) {
  puts(
      "{\"protocol\": 1, \"name\": \"C host\", \"version\": \"1\", \"schedules\": \"any\", \"level\": \"program\",\n"
      " \"delivers\": [\"forward\", \"output\", \"loss\", \"backward\", \"partial\", \"grad\"]}");
  return 0;
}

/* The path of the case's folder, which the job gives relative to its own folder. */
static const char* folder_of(Arena* arena, const char* job_file, const Json* item) {
  const char* slash = strrchr(job_file, '/');
  return arena_text(arena, "%.*s%s", slash ? (int)(slash - job_file) + 1 : 0, job_file,
                    json_text(json_get(item, "folder"), "the job's folder"));
}

static void print_text(const char* text) {
  putchar('"');
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') putchar('\\');
    putchar(*text);
  }
  putchar('"');
}

static int plan(const Json* job, const char* job_file) {
  puts("[");
  json_each (item, json_get(job, "cases")) {
    Arena arena = {0};
    const char* why = NULL;
    const Pipeline* pipeline = pipeline_read(&arena, folder_of(&arena, job_file, item), &why);
    printf("{\"id\": ");
    print_text(json_text(json_get(item, "id"), "the job's id"));
    printf(", \"schedule\": ");
    print_text(json_text(json_get(item, "schedule"), "the job's schedule"));
    printf(", \"supported\": %s", pipeline ? "true" : "false, \"why\": ");
    if (!pipeline) print_text(why);
    puts(item->next ? "}," : "}");
    arena_free(&arena);
  }
  puts("]");
  return 0;
}

static bool make_folders(char* path) {
  for (char* slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  return true;
}

static const char* run_case(Arena* arena, const Json* item, const char* job_file, const char* out) {
  const char* why = NULL;
  Pipeline* pipeline = pipeline_read(arena, folder_of(arena, job_file, item), &why);
  if (!pipeline || (why = pipeline_run(pipeline))) return why;
  for (int rank = 0; rank < pipeline_ranks(pipeline); ++rank) {
    char* path =
        arena_text(arena, "%s/%s%d.safetensors", out, json_text(json_get(item, "results"), "the job's results"), rank);
    if (!make_folders(path) || !tensors_write(path, pipeline_results(pipeline, rank)))
      return "results cannot be written";
  }
  return NULL;
}

static int run(const Json* job, const char* job_file, const char* out) {
  int number = 0;
  json_each (item, json_get(job, "cases")) {
    Arena arena = {0};
    printf("@plumbline case %d begins\n", number);
    fflush(stdout);
    const char* why = run_case(&arena, item, job_file, out);
    if (why) fprintf(stderr, "plumbline: %s: %s\n", json_text(json_get(item, "id"), "the job's id"), why);
    arena_free(&arena);
    if (why) return 1;
    printf("@plumbline case %d done\n", number++);
    fflush(stdout);
  }
  return 0;
}

static const char* option(int argc, char** argv, const char* name) {
  for (int i = 2; i + 1 < argc; ++i)
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  return "";
}

int main(int argc, char** argv) {
  const char *verb = argc > 1 ? argv[1] : "", *job_file = option(argc, argv, "--job"),
             *out = option(argc, argv, "--out");
  if (strcmp(verb, "describe") == 0) return describe();
  if (strcmp(verb, "plan") != 0 && strcmp(verb, "run") != 0)
    refuse("usage: describe, plan --job J, or run --job J --out D");
  Arena arena = {0};
  const char* text = read_whole_file(&arena, job_file, NULL);
  const Json* job = text ? json_parse(&arena, text) : NULL;
  if (!job || !json_is(json_get(job, "format"), "plumbline-job/1"))
    refuse("%s: not a job of format plumbline-job/1", job_file);
  const int code = strcmp(verb, "plan") == 0 ? plan(job, job_file) : run(job, job_file, out);
  arena_free(&arena);
  return code;
}
