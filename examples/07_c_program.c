/* 7. A C program: run a saved plan, with no compiler and no C++ in sight.

       fusec save graphs/softmax.fuse -o softmax.plan --cpu
       c_program softmax.plan B=5

   It runs on the cpu device, or on the emulated one where the plan is for that one alone.
   It runs plans whose inputs, parameters and outputs are f32, on values that it makes up, and prints the sum
   of each output. Every call returns a status; on failure fuse_compiler_last_error() has the text.
   SPDX-License-Identifier: Apache-2.0 */
#include <fuse/c_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All that is made on the way. Null is what a free function takes for nothing, so that one way out serves
   every failure. */
struct program {
  fuse_compiler_device* device;
  fuse_compiler_plan* plan;
  fuse_compiler_prepared* prepared;
  fuse_compiler_workspace* workspace;
  fuse_compiler_stream* stream;
  fuse_compiler_buffer* packed;
  fuse_compiler_buffer** buffers; /* one for each slot */
  fuse_compiler_view* views;
  size_t slots;
  char refused[1024]; /* why the plan is not for the first device */
};

static void free_program(struct program* p) {
  for (size_t i = 0; p->buffers && i < p->slots; ++i) fuse_compiler_buffer_free(p->buffers[i]);
  free(p->buffers);
  free(p->views);
  fuse_compiler_buffer_free(p->packed);
  fuse_compiler_stream_free(p->stream);
  fuse_compiler_workspace_free(p->workspace);
  fuse_compiler_prepared_free(p->prepared);
  fuse_compiler_plan_free(p->plan);
  fuse_compiler_device_free(p->device);
}

/* Ends a function with the status of a call that failed. */
#define CHECK(call)                                  \
  do {                                               \
    const int status_ = (call);                      \
    if (status_ != FUSE_COMPILER_OK) return status_; \
  } while (0)

/* "B=5" as a name and a value: the dims that the graph leaves open. */
static int parse_dim(char* text, const char** name, int64_t* value) {
  char* const equals = strchr(text, '=');
  char* end = NULL;
  if (!equals || equals == text) return 0;
  *equals = '\0';
  *name = text;
  *value = strtoll(equals + 1, &end, 10);
  return end != equals + 1 && *end == '\0';
}

/* Structs are zeroed and say how large they are, so that this program works with later versions of the
   library, whose structs have more fields. Null instead of a struct is all of its defaults. */
static int open_cpu(fuse_compiler_device** device) {
  fuse_compiler_cpu_options options = {0};
  options.struct_size = sizeof options;
  options.threads = 2; /* the results have the same bits for any number of threads */
  return fuse_compiler_device_cpu(&options, device);
}
static int open_emulated(fuse_compiler_device** device) {
  return fuse_compiler_device_emulated(NULL, device);
}

/* A plan is for the devices that it was saved for. An application knows its device, opens it, and stops where
   the plan is for another one; this program takes what fits, and keeps why the first device did not. */
static int load_plan(struct program* p, const char* path) {
  int (*const open[])(fuse_compiler_device**) = {open_cpu, open_emulated}; /* _cuda(0, device) is a GPU */
  int status = FUSE_COMPILER_OK;
  for (size_t i = 0; i < sizeof open / sizeof *open; ++i) {
    if (i > 0) snprintf(p->refused, sizeof p->refused, "%s", fuse_compiler_last_error());
    fuse_compiler_device_free(p->device);
    p->device = NULL;
    status = open[i](&p->device);
    if (status == FUSE_COMPILER_OK) status = fuse_compiler_plan_load(path, p->device, &p->plan);
    /* Another device may fit, and this library or machine may not have every device. */
    if (status != FUSE_COMPILER_INCOMPATIBLE_VERSION && status != FUSE_COMPILER_UNSUPPORTED) break;
  }
  if (status == FUSE_COMPILER_OK) p->refused[0] = '\0';
  return status;
}

/* Once: everything up to the buffers. */
static int open_program(struct program* p, const char* path, const char* const* names, const int64_t* values,
                        size_t dims) {
  fuse_compiler_run_info run = {0};
  run.struct_size = sizeof run;
  CHECK(load_plan(p, path));
  CHECK(fuse_compiler_prepare(p->plan, names, values, dims, &p->prepared));
  CHECK(fuse_compiler_workspace_new(p->prepared, NULL, &p->workspace));
  CHECK(fuse_compiler_stream_new(p->device, &p->stream)); /* or _wrap, of a CUstream */
  CHECK(fuse_compiler_plan_slot_count(p->plan, &p->slots));
  p->buffers = calloc(p->slots, sizeof *p->buffers);
  p->views = calloc(p->slots, sizeof *p->views);
  if (p->slots > 0 && (!p->buffers || !p->views)) return FUSE_COMPILER_OUT_OF_MEMORY;
  CHECK(fuse_compiler_prepared_info(p->prepared, &run));
  if (run.packed_bytes > 0) CHECK(fuse_compiler_buffer_new(p->device, run.packed_bytes, &p->packed));
  return FUSE_COMPILER_OK;
}

static int slot_info(const struct program* p, size_t slot, fuse_compiler_slot_info* info) {
  memset(info, 0, sizeof *info);
  info->struct_size = sizeof *info;
  return fuse_compiler_prepared_slot(p->prepared, slot, info);
}

/* A buffer for each slot, filled where a run reads it. */
static int fill_program(struct program* p) {
  for (size_t slot = 0; slot < p->slots; ++slot) {
    fuse_compiler_slot_info info;
    CHECK(slot_info(p, slot, &info));
    if (info.dtype != FUSE_COMPILER_F32) {
      fprintf(stderr, "error: %s is not f32\n", info.name);
      return FUSE_COMPILER_UNSUPPORTED;
    }
    if (info.donor >= 0) { /* an output in the memory of an input */
      p->views[slot] = p->views[info.donor];
      continue;
    }
    CHECK(fuse_compiler_buffer_new(p->device, info.bytes, &p->buffers[slot]));
    CHECK(fuse_compiler_buffer_view(p->buffers[slot], &p->views[slot]));
    if (info.kind == FUSE_COMPILER_OUTPUT || info.bytes == 0) continue;
    const size_t count = (size_t)info.bytes / sizeof(float);
    float* const values = malloc((size_t)info.bytes);
    if (!values) return FUSE_COMPILER_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; ++i) values[i] = (float)(i % 251) / 25;
    const int status = fuse_compiler_buffer_upload(p->buffers[slot], values, (size_t)info.bytes);
    free(values);
    CHECK(status);
  }
  return FUSE_COMPILER_OK;
}

static int run_program(struct program* p) {
  fuse_compiler_view packed = {0};
  const fuse_compiler_view* in = NULL;
  if (p->packed) {
    CHECK(fuse_compiler_buffer_view(p->packed, &packed));
    in = &packed;
    CHECK(fuse_compiler_pack(p->prepared, p->stream, p->views, p->slots, in));
  }
  CHECK(fuse_compiler_run(p->prepared, p->stream, p->views, p->slots, p->workspace, in));
  return fuse_compiler_stream_synchronize(p->stream);
}

/* "y f32[5, 4096] sum 5.0000" */
static int print_outputs(const struct program* p) {
  for (size_t slot = 0; slot < p->slots; ++slot) {
    fuse_compiler_slot_info info;
    CHECK(slot_info(p, slot, &info));
    if (info.kind != FUSE_COMPILER_OUTPUT) continue;
    const fuse_compiler_buffer* const buffer = p->buffers[info.donor >= 0 ? (size_t)info.donor : slot];
    float* const values = malloc(info.bytes > 0 ? (size_t)info.bytes : 1);
    if (!values) return FUSE_COMPILER_OUT_OF_MEMORY;
    const int status = fuse_compiler_buffer_download(buffer, values, (size_t)info.bytes);
    double sum = 0;
    for (size_t i = 0; status == FUSE_COMPILER_OK && i < (size_t)info.bytes / sizeof(float); ++i)
      sum += values[i];
    free(values);
    CHECK(status);
    printf("%s f32[", info.name);
    for (int64_t axis = 0; axis < info.rank; ++axis) printf("%s%" PRId64, axis ? ", " : "", info.shape[axis]);
    printf("] sum %.4f\n", sum);
  }
  return FUSE_COMPILER_OK;
}

int main(int argc, char** argv) {
  enum { most_dims = 16 };
  const char* names[most_dims];
  int64_t values[most_dims];
  struct program program = {0};
  if (argc < 2 || argc - 2 > most_dims || strcmp(argv[1], "--help") == 0) {
    printf("c_program PLAN [DIM=VALUE]...: runs what fusec save wrote\n");
    return argc == 2 ? 0 : 2;
  }
  for (int i = 2; i < argc; ++i) {
    if (parse_dim(argv[i], &names[i - 2], &values[i - 2])) continue;
    fprintf(stderr, "error: '%s' is no DIM=VALUE\n", argv[i]);
    return 2;
  }
  int status = open_program(&program, argv[1], names, values, (size_t)argc - 2);
  if (status == FUSE_COMPILER_OK) status = fill_program(&program);
  if (status == FUSE_COMPILER_OK) status = run_program(&program);
  if (status == FUSE_COMPILER_OK) status = print_outputs(&program);
  if (status != FUSE_COMPILER_OK) {
    if (program.refused[0] != '\0') fprintf(stderr, "%s\n", program.refused);
    fprintf(stderr, "error: %s: %s\n", fuse_compiler_status_name(status), fuse_compiler_last_error());
  }
  free_program(&program);
  return status == FUSE_COMPILER_OK ? 0 : 1;
}
