/* The C interface of running: load a saved plan, bind buffers, run. C99, and C++; in libfuse-compiler and in
   libfuse-compiler-runtime. docs/interop.md has an example and the rules of ownership.

   - Every function that can fail returns a status: FUSE_COMPILER_OK, or one of the codes below, and then
     fuse_compiler_last_error() has the text and what `out` points to is as it was. Nothing is thrown.
   - A null argument is FUSE_COMPILER_INVALID_ARGUMENT unless it is said to be allowed. A handle is checked
     for null only: one that was freed, or is of another kind, is not found out.
   - Handles are freed in any order, by their function; null is allowed there.
   - A device, plan or prepared may be used by threads at once; a stream, buffer or workspace by one.
   - A struct that begins with struct_size grows at its end in later versions. Set all of it to zero, then
     struct_size to its sizeof; 0 is the default of every field. The library takes a smaller struct of an
     older program, and a larger one of a newer program where what it does not know is zero. Every field
     takes 8 bytes, so that a struct of any version ends between two fields.

   SPDX-License-Identifier: Apache-2.0 */
#ifndef FUSE_COMPILER_C_API_H
#define FUSE_COMPILER_C_API_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(FUSE_COMPILER_STATIC)
#define FUSE_COMPILER_C_API __attribute__((visibility("default")))
#else
#define FUSE_COMPILER_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. The values stay; later versions may add some. */
enum {
  FUSE_COMPILER_OK = 0,
  FUSE_COMPILER_SHAPE_MISMATCH = 1,
  FUSE_COMPILER_DTYPE_MISMATCH = 2,
  FUSE_COMPILER_INVALID_EXTENT = 3,
  FUSE_COMPILER_INVALID_ARGUMENT = 4,
  FUSE_COMPILER_UNKNOWN_NAME = 5,
  FUSE_COMPILER_DUPLICATE_NAME = 6,
  FUSE_COMPILER_WRONG_GRAPH = 7,
  FUSE_COMPILER_CONTRADICTION = 8,
  FUSE_COMPILER_VIOLATED_GUARD = 9,
  FUSE_COMPILER_CYCLE = 10,
  FUSE_COMPILER_PARSE = 11,
  FUSE_COMPILER_FILE_FORMAT = 12,
  FUSE_COMPILER_IO = 13,
  FUSE_COMPILER_BUFFER_SIZE = 14,
  FUSE_COMPILER_MISALIGNED = 15,
  FUSE_COMPILER_UNBOUND = 16,
  FUSE_COMPILER_MISSING_LIBRARY = 17,
  FUSE_COMPILER_MISSING_COMPILER = 18,
  FUSE_COMPILER_BROKEN_INSTALL = 19,
  FUSE_COMPILER_INCOMPATIBLE_VERSION = 20,
  FUSE_COMPILER_UNKNOWN_ARCH = 21,
  FUSE_COMPILER_UNSUPPORTED = 22,
  FUSE_COMPILER_OUT_OF_MEMORY = 23,
  FUSE_COMPILER_OUT_OF_RESIDENCY = 24,
  FUSE_COMPILER_DRIVER = 25,
  FUSE_COMPILER_KERNEL_FAULT = 26,
  FUSE_COMPILER_INTERNAL = 27
};

enum { FUSE_COMPILER_INPUT = 0, FUSE_COMPILER_PARAMETER = 1, FUSE_COMPILER_OUTPUT = 2 };

/* A bool is one byte that holds 0 or 1. */
enum {
  FUSE_COMPILER_F64 = 0,
  FUSE_COMPILER_F32 = 1,
  FUSE_COMPILER_F16 = 2,
  FUSE_COMPILER_BF16 = 3,
  FUSE_COMPILER_I64 = 4,
  FUSE_COMPILER_I32 = 5,
  FUSE_COMPILER_I8 = 6,
  FUSE_COMPILER_U8 = 7,
  FUSE_COMPILER_BOOL = 8
};

/* How the emulated device places blocks that wait for each other (BlockScheduling in device.hpp). */
enum { FUSE_COMPILER_GREEDY = 0, FUSE_COMPILER_GANG = 1 };

/* How runs reach the device (ExecutionMode in executable.hpp). */
enum { FUSE_COMPILER_STREAMS = 0, FUSE_COMPILER_GRAPH = 1, FUSE_COMPILER_AUTOMATIC = 2 };

typedef struct fuse_compiler_device fuse_compiler_device;
typedef struct fuse_compiler_plan fuse_compiler_plan;
typedef struct fuse_compiler_prepared fuse_compiler_prepared;
typedef struct fuse_compiler_workspace fuse_compiler_workspace;
typedef struct fuse_compiler_stream fuse_compiler_stream;
typedef struct fuse_compiler_buffer fuse_compiler_buffer;

/* Where elements are in device memory, 16-byte aligned: in a buffer or in the program's own. Never grows. */
typedef struct fuse_compiler_view {
  void* address;
  int64_t bytes;
} fuse_compiler_view;

typedef struct fuse_compiler_emulated_options {
  size_t struct_size;
  const char* profile;   /* "h200" where null; a100, v100, tiny3, tiny2 */
  int64_t checked;       /* not 0: finds bad accesses, races, divergent barriers */
  int64_t threads;       /* 0: one per core */
  uint64_t shuffle_seed; /* not 0: threads run in an order drawn from it */
  int64_t scheduling;    /* FUSE_COMPILER_GREEDY, ... */
} fuse_compiler_emulated_options;

typedef struct fuse_compiler_cpu_options {
  size_t struct_size;
  int64_t threads;     /* those of the device, the calling one counts; 0: one for each core of the process */
  int64_t pin;         /* not 0: each worker thread stays on one core; the calling thread is left alone */
  const char* machine; /* "x86-64-v2", "x86-64-v3" or "x86-64-v4"; what this machine has where null */
} fuse_compiler_cpu_options;

typedef struct fuse_compiler_workspace_options {
  size_t struct_size;
  int64_t mode; /* FUSE_COMPILER_STREAMS, ... */
  /* The caller's memory, workspace_bytes long, 256-byte aligned, which outlives the workspace; null: the
     device's. */
  void* memory;
  int64_t memory_bytes;
} fuse_compiler_workspace_options;

/* Written by fuse_compiler_plan_slot and fuse_compiler_prepared_slot. What it points to belongs to the
 * handle. */
typedef struct fuse_compiler_slot_info {
  size_t struct_size;
  const char* name;
  int64_t kind;  /* FUSE_COMPILER_INPUT, ... */
  int64_t dtype; /* FUSE_COMPILER_F32, ... */
  int64_t rank;
  int64_t donor;        /* for an output, the slot of the input whose memory it shares, else -1 */
  const int64_t* shape; /* `rank` extents; null for a plan, whose dims are open */
  int64_t bytes;        /* -1 for a plan */
  int64_t read_in_run;  /* 0: pack alone reads it, and run takes a null view; 1 for a plan */
} fuse_compiler_slot_info;

/* Written by fuse_compiler_prepared_info. */
typedef struct fuse_compiler_run_info {
  size_t struct_size;
  int64_t workspace_bytes;
  int64_t packed_bytes; /* 0: nothing to pack */
  int64_t launches;     /* kernel launches per run */
  int64_t gemms;        /* GEMM calls per run */
  int64_t streams;      /* those that a run uses, the caller's among them */
} fuse_compiler_run_info;

/* "0.1.0" */
FUSE_COMPILER_C_API const char* fuse_compiler_version(void);
/* What went wrong in the last call of this thread that failed; "" where none has. Valid until the next one.
 */
FUSE_COMPILER_C_API const char* fuse_compiler_last_error(void);
/* "invalid-argument"; "?" for a status that this version does not know. */
FUSE_COMPILER_C_API const char* fuse_compiler_status_name(int status);

/* The emulated device; `options` may be null. */
FUSE_COMPILER_C_API int fuse_compiler_device_emulated(const fuse_compiler_emulated_options* options,
                                                      fuse_compiler_device** out);
/* The cpu device, which runs native kernels on the cores of this machine; `options` may be null. Any host
   memory that is 16-byte aligned can be bound. FUSE_COMPILER_UNSUPPORTED where this machine is not `machine`,
   or is no x86-64-v2. */
FUSE_COMPILER_C_API int fuse_compiler_device_cpu(const fuse_compiler_cpu_options* options,
                                                 fuse_compiler_device** out);
/* A GPU, by its primary context. */
FUSE_COMPILER_C_API int fuse_compiler_device_cuda(int ordinal, fuse_compiler_device** out);
/* "emulated h200"; belongs to the device. */
FUSE_COMPILER_C_API int fuse_compiler_device_name(const fuse_compiler_device* device, const char** out);
FUSE_COMPILER_C_API void fuse_compiler_device_free(fuse_compiler_device* device);

/* A plan that `fusec save` or Executable::save wrote, for such a device. */
FUSE_COMPILER_C_API int fuse_compiler_plan_load(const char* path, const fuse_compiler_device* device,
                                                fuse_compiler_plan** out);
/* Inputs and parameters, then outputs; a slot is an index among them. */
FUSE_COMPILER_C_API int fuse_compiler_plan_slot_count(const fuse_compiler_plan* plan, size_t* out);
FUSE_COMPILER_C_API int fuse_compiler_plan_slot(const fuse_compiler_plan* plan, size_t slot,
                                                fuse_compiler_slot_info* out);
/* The slot of an input or parameter, and of an output, by name. */
FUSE_COMPILER_C_API int fuse_compiler_plan_find_input(const fuse_compiler_plan* plan, const char* name,
                                                      size_t* out);
FUSE_COMPILER_C_API int fuse_compiler_plan_find_output(const fuse_compiler_plan* plan, const char* name,
                                                       size_t* out);
FUSE_COMPILER_C_API void fuse_compiler_plan_free(fuse_compiler_plan* plan);

/* Ready to run with these dims: `count` names, each with the value beside it. Both may be null for none. */
FUSE_COMPILER_C_API int fuse_compiler_prepare(const fuse_compiler_plan* plan, const char* const* names,
                                              const int64_t* values, size_t count,
                                              fuse_compiler_prepared** out);
FUSE_COMPILER_C_API int fuse_compiler_prepared_slot(const fuse_compiler_prepared* prepared, size_t slot,
                                                    fuse_compiler_slot_info* out);
FUSE_COMPILER_C_API int fuse_compiler_prepared_info(const fuse_compiler_prepared* prepared,
                                                    fuse_compiler_run_info* out);
FUSE_COMPILER_C_API void fuse_compiler_prepared_free(fuse_compiler_prepared* prepared);

/* What one run in flight has for itself; `options` may be null. */
FUSE_COMPILER_C_API int fuse_compiler_workspace_new(const fuse_compiler_prepared* prepared,
                                                    const fuse_compiler_workspace_options* options,
                                                    fuse_compiler_workspace** out);
FUSE_COMPILER_C_API void fuse_compiler_workspace_free(fuse_compiler_workspace* workspace);

FUSE_COMPILER_C_API int fuse_compiler_stream_new(const fuse_compiler_device* device,
                                                 fuse_compiler_stream** out);
/* Wraps the caller's CUstream, which stays the caller's; null is CUDA's default stream. cuda devices only. */
FUSE_COMPILER_C_API int fuse_compiler_stream_wrap(const fuse_compiler_device* device, void* custream,
                                                  fuse_compiler_stream** out);
/* Waits for the work so far, and reports a failure of any of it. */
FUSE_COMPILER_C_API int fuse_compiler_stream_synchronize(fuse_compiler_stream* stream);
/* Its CUstream; null off CUDA. */
FUSE_COMPILER_C_API int fuse_compiler_stream_native(const fuse_compiler_stream* stream, void** out);
FUSE_COMPILER_C_API void fuse_compiler_stream_free(fuse_compiler_stream* stream);

/* Device memory, 256-byte aligned, contents undefined. */
FUSE_COMPILER_C_API int fuse_compiler_buffer_new(const fuse_compiler_device* device, int64_t bytes,
                                                 fuse_compiler_buffer** out);
FUSE_COMPILER_C_API int fuse_compiler_buffer_view(const fuse_compiler_buffer* buffer,
                                                  fuse_compiler_view* out);
/* Copies all of the buffer from or to host memory and waits; work on it has to be over. `from` and `to` may
   be null where `bytes` is 0. */
FUSE_COMPILER_C_API int fuse_compiler_buffer_upload(fuse_compiler_buffer* buffer, const void* from,
                                                    size_t bytes);
FUSE_COMPILER_C_API int fuse_compiler_buffer_download(const fuse_compiler_buffer* buffer, void* to,
                                                      size_t bytes);
/* Frees the memory too: work on it has to be over. */
FUSE_COMPILER_C_API void fuse_compiler_buffer_free(fuse_compiler_buffer* buffer);

/* As Prepared::pack and Prepared::run: `buffers` has one view per slot, `count` of them; `packed` is null
   where packed_bytes is 0. They enqueue, neither allocate nor wait, and look at no view after they return. */
FUSE_COMPILER_C_API int fuse_compiler_pack(const fuse_compiler_prepared* prepared,
                                           fuse_compiler_stream* stream, const fuse_compiler_view* buffers,
                                           size_t count, const fuse_compiler_view* packed);
FUSE_COMPILER_C_API int fuse_compiler_run(const fuse_compiler_prepared* prepared,
                                          fuse_compiler_stream* stream, const fuse_compiler_view* buffers,
                                          size_t count, fuse_compiler_workspace* workspace,
                                          const fuse_compiler_view* packed);

#ifdef __cplusplus
}
#endif

#endif
