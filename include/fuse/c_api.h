/** @file
   The C interface of running: load a saved plan, bind buffers, run. C99, and C++; in libfuse-compiler and in
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

/** For the library itself. */
#if defined(__GNUC__) && !defined(FUSE_COMPILER_STATIC)
#define FUSE_COMPILER_C_API __attribute__((visibility("default")))
#else
#define FUSE_COMPILER_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What a call returns. The values stay; later versions may add some. */
enum {
  FUSE_COMPILER_OK = 0,               /**< nothing went wrong */
  FUSE_COMPILER_SHAPE_MISMATCH = 1,   /**< shapes do not fit each other, or the declared one */
  FUSE_COMPILER_DTYPE_MISMATCH = 2,   /**< element types differ, or an op does not take this type */
  FUSE_COMPILER_INVALID_EXTENT = 3,   /**< an extent is negative, out of its range, or overflows 63 bits */
  FUSE_COMPILER_INVALID_ARGUMENT = 4, /**< an argument has a value that is not allowed there */
  FUSE_COMPILER_UNKNOWN_NAME = 5,     /**< there is nothing of that name */
  FUSE_COMPILER_DUPLICATE_NAME = 6,   /**< two things have one name, or one is given twice */
  FUSE_COMPILER_WRONG_GRAPH = 7,      /**< a tensor or dim of another graph */
  FUSE_COMPILER_CONTRADICTION = 8,    /**< assumptions that cannot hold together */
  FUSE_COMPILER_VIOLATED_GUARD = 9,   /**< dims for which an assumption, or what an op needs, does not hold */
  FUSE_COMPILER_CYCLE = 10,           /**< `.fuse` text uses a value before it is defined */
  FUSE_COMPILER_PARSE = 11,           /**< a text does not follow its grammar */
  FUSE_COMPILER_FILE_FORMAT = 12,     /**< a file is not of its format, or is damaged */
  FUSE_COMPILER_IO = 13,              /**< a file or a directory cannot be opened, read, made or written */
  FUSE_COMPILER_BUFFER_SIZE = 14,     /**< a buffer has another number of bytes than the type asks for */
  FUSE_COMPILER_MISALIGNED = 15,      /**< an address is not aligned as it must be */
  FUSE_COMPILER_UNBOUND = 16,         /**< an input, parameter, output or dim has no value */
  FUSE_COMPILER_MISSING_LIBRARY = 17, /**< a library was not found, or this build of fuse lacks the device */
  FUSE_COMPILER_MISSING_COMPILER = 18,     /**< kernels are to be built, and there is no C++ compiler */
  FUSE_COMPILER_BROKEN_INSTALL = 19,       /**< a library or compiler is there, but damaged or incomplete */
  FUSE_COMPILER_INCOMPATIBLE_VERSION = 20, /**< a library, driver or plan does not fit fuse or the device */
  FUSE_COMPILER_UNKNOWN_ARCH = 21,         /**< NVRTC does not compile for this architecture */
  FUSE_COMPILER_UNSUPPORTED = 22,      /**< well formed, but this device, build or file format cannot do it */
  FUSE_COMPILER_OUT_OF_MEMORY = 23,    /**< the host or the device has no room */
  FUSE_COMPILER_OUT_OF_RESIDENCY = 24, /**< blocks that wait for each other do not all find slots */
  FUSE_COMPILER_DRIVER = 25,           /**< the device's driver or library refused; the text has its code */
  FUSE_COMPILER_KERNEL_FAULT = 26, /**< checked mode found an illegal access, a race or a divergent barrier */
  FUSE_COMPILER_INTERNAL = 27      /**< an error in fuse itself */
};

/** What a slot is for. */
enum {
  FUSE_COMPILER_INPUT = 0,     /**< data that changes from run to run */
  FUSE_COMPILER_PARAMETER = 1, /**< data that is bound once: weights */
  FUSE_COMPILER_OUTPUT = 2     /**< what a run writes */
};

/** The element types. A bool is one byte that holds 0 or 1. */
enum {
  FUSE_COMPILER_F64 = 0,  /**< binary64 */
  FUSE_COMPILER_F32 = 1,  /**< binary32 */
  FUSE_COMPILER_F16 = 2,  /**< binary16 */
  FUSE_COMPILER_BF16 = 3, /**< bfloat16 */
  FUSE_COMPILER_I64 = 4,  /**< int64_t */
  FUSE_COMPILER_I32 = 5,  /**< int32_t */
  FUSE_COMPILER_I8 = 6,   /**< int8_t */
  FUSE_COMPILER_U8 = 7,   /**< uint8_t */
  FUSE_COMPILER_BOOL = 8  /**< bool, one byte */
};

/** How the emulated device places blocks that wait for each other (BlockScheduling in device.hpp). */
enum {
  FUSE_COMPILER_GREEDY = 0, /**< block by block, in turns between the kernels */
  FUSE_COMPILER_GANG = 1    /**< a kernel starts when all of its blocks have slots */
};

/** How runs reach the device (ExecutionMode in executable.hpp). */
enum {
  FUSE_COMPILER_STREAMS = 0,  /**< step by step, on streams */
  FUSE_COMPILER_GRAPH = 1,    /**< as one CUDA graph; step by step on a device that has no graphs */
  FUSE_COMPILER_AUTOMATIC = 2 /**< what the plan says; else what the cost model expects to be faster */
};

/** What plans run on. */
typedef struct fuse_compiler_device fuse_compiler_device;
/** A saved plan on a device. */
typedef struct fuse_compiler_plan fuse_compiler_plan;
/** A plan made ready for dims. */
typedef struct fuse_compiler_prepared fuse_compiler_prepared;
/** What one run in flight has for itself. */
typedef struct fuse_compiler_workspace fuse_compiler_workspace;
/** An in-order queue of work on a device. */
typedef struct fuse_compiler_stream fuse_compiler_stream;
/** Device memory that the handle owns. */
typedef struct fuse_compiler_buffer fuse_compiler_buffer;

/** Where elements are in device memory, 16-byte aligned: in a buffer or in the program's own. Never grows. */
typedef struct fuse_compiler_view {
  void* address; /**< the first byte */
  int64_t bytes; /**< the number of bytes from there on */
} fuse_compiler_view;

/** Options of the emulated device. */
typedef struct fuse_compiler_emulated_options {
  size_t struct_size;    /**< sizeof this struct; set by the caller */
  const char* profile;   /**< "h200" where null; a name as in Device::Emulated */
  int64_t checked;       /**< not 0: finds bad accesses, races, divergent barriers */
  int64_t threads;       /**< 0: one per core */
  uint64_t shuffle_seed; /**< not 0: threads run in an order drawn from it */
  int64_t scheduling;    /**< FUSE_COMPILER_GREEDY, ... */
} fuse_compiler_emulated_options;

/** Options of the cpu device. */
typedef struct fuse_compiler_cpu_options {
  size_t struct_size; /**< sizeof this struct; set by the caller */
  int64_t threads;    /**< those of the device, the calling one counts; 0: one for each core of the process */
  int64_t pin;        /**< not 0: each worker thread stays on one core; the calling thread is left alone */
  const char* machine; /**< "x86-64-v2", "x86-64-v3" or "x86-64-v4"; what this machine has where null */
} fuse_compiler_cpu_options;

/** Options of a workspace. */
typedef struct fuse_compiler_workspace_options {
  size_t struct_size; /**< sizeof this struct; set by the caller */
  int64_t mode;       /**< FUSE_COMPILER_STREAMS, ... */
  /** The caller's memory, workspace_bytes long, 256-byte aligned, which outlives the workspace; null: the
     device's. */
  void* memory;
  int64_t memory_bytes; /**< the number of bytes of `memory`; 0 where it is null */
} fuse_compiler_workspace_options;

/** An input, a parameter or an output. Written by fuse_compiler_plan_slot and fuse_compiler_prepared_slot.
   What it points to belongs to the handle. */
typedef struct fuse_compiler_slot_info {
  size_t struct_size;   /**< sizeof this struct; set by the caller */
  const char* name;     /**< the name in the graph */
  int64_t kind;         /**< FUSE_COMPILER_INPUT, ... */
  int64_t dtype;        /**< FUSE_COMPILER_F32, ... */
  int64_t rank;         /**< the number of extents */
  int64_t donor;        /**< for an output, the slot of the input whose memory it shares, else -1 */
  const int64_t* shape; /**< `rank` extents; null for a plan, whose dims are open */
  int64_t bytes;        /**< the bytes that its buffer needs; -1 for a plan */
  int64_t read_in_run;  /**< 0: pack alone reads it, and run takes a null view; 1 for a plan */
} fuse_compiler_slot_info;

/** What a run needs and does. Written by fuse_compiler_prepared_info. */
typedef struct fuse_compiler_run_info {
  size_t struct_size;      /**< sizeof this struct; set by the caller */
  int64_t workspace_bytes; /**< the memory that a workspace needs */
  int64_t packed_bytes;    /**< the packed memory, 256-byte aligned; 0: nothing to pack */
  int64_t launches;        /**< kernel launches per run */
  int64_t gemms;           /**< GEMM calls per run */
  int64_t streams;         /**< those that a run uses, the caller's among them */
} fuse_compiler_run_info;

/** The version of the library: "0.1.0". */
FUSE_COMPILER_C_API const char* fuse_compiler_version(void);
/** What went wrong in the last call of this thread that failed; "" where none has. Valid until the
   next one. */
FUSE_COMPILER_C_API const char* fuse_compiler_last_error(void);
/** The name of a status: "invalid-argument"; "?" for a status that this version does not know. */
FUSE_COMPILER_C_API const char* fuse_compiler_status_name(int status);

/** The emulated device; `options` may be null. FUSE_COMPILER_UNKNOWN_NAME for an unknown profile. */
FUSE_COMPILER_C_API int fuse_compiler_device_emulated(const fuse_compiler_emulated_options* options,
                                                      fuse_compiler_device** out);
/** The cpu device, which runs native kernels on the cores of this machine; `options` may be null. Any host
   memory that is 16-byte aligned can be bound. FUSE_COMPILER_UNSUPPORTED where this machine is not `machine`,
   or is no x86-64-v2. */
FUSE_COMPILER_C_API int fuse_compiler_device_cpu(const fuse_compiler_cpu_options* options,
                                                 fuse_compiler_device** out);
/** The GPU of this number, by its primary context. */
FUSE_COMPILER_C_API int fuse_compiler_device_cuda(int ordinal, fuse_compiler_device** out);
/** The name of the device: "emulated h200". It belongs to the device. */
FUSE_COMPILER_C_API int fuse_compiler_device_name(const fuse_compiler_device* device, const char** out);
/** Frees the handle; plans, streams and buffers of the device keep what they need of it. */
FUSE_COMPILER_C_API void fuse_compiler_device_free(fuse_compiler_device* device);

/** Loads a plan that `fusec save` or Executable::save wrote, for such a device. FUSE_COMPILER_IO,
   FUSE_COMPILER_FILE_FORMAT, and FUSE_COMPILER_INCOMPATIBLE_VERSION where the file has no part for it. */
FUSE_COMPILER_C_API int fuse_compiler_plan_load(const char* path, const fuse_compiler_device* device,
                                                fuse_compiler_plan** out);
/** The number of slots. Inputs and parameters come first, then outputs; a slot is an index among them. */
FUSE_COMPILER_C_API int fuse_compiler_plan_slot_count(const fuse_compiler_plan* plan, size_t* out);
/** Describes a slot, whose dims are open. FUSE_COMPILER_INVALID_ARGUMENT where there is no such slot. */
FUSE_COMPILER_C_API int fuse_compiler_plan_slot(const fuse_compiler_plan* plan, size_t slot,
                                                fuse_compiler_slot_info* out);
/** The slot of an input or parameter by name; FUSE_COMPILER_UNKNOWN_NAME where there is none. */
FUSE_COMPILER_C_API int fuse_compiler_plan_find_input(const fuse_compiler_plan* plan, const char* name,
                                                      size_t* out);
/** The slot of an output by name; FUSE_COMPILER_UNKNOWN_NAME where there is none. */
FUSE_COMPILER_C_API int fuse_compiler_plan_find_output(const fuse_compiler_plan* plan, const char* name,
                                                       size_t* out);
/** Frees the handle; what was prepared from the plan keeps what it needs of it. */
FUSE_COMPILER_C_API void fuse_compiler_plan_free(fuse_compiler_plan* plan);

/** Makes a plan ready to run with these dims: `count` names, each with the value beside it. Both may be null
   for none. Fails as Executable::prepare, and with FUSE_COMPILER_DUPLICATE_NAME for a name given twice. */
FUSE_COMPILER_C_API int fuse_compiler_prepare(const fuse_compiler_plan* plan, const char* const* names,
                                              const int64_t* values, size_t count,
                                              fuse_compiler_prepared** out);
/** Describes a slot with its extents. FUSE_COMPILER_INVALID_ARGUMENT where there is no such slot. */
FUSE_COMPILER_C_API int fuse_compiler_prepared_slot(const fuse_compiler_prepared* prepared, size_t slot,
                                                    fuse_compiler_slot_info* out);
/** Describes what a run needs and does. */
FUSE_COMPILER_C_API int fuse_compiler_prepared_info(const fuse_compiler_prepared* prepared,
                                                    fuse_compiler_run_info* out);
/** Frees the handle; its workspaces keep what they need of it. */
FUSE_COMPILER_C_API void fuse_compiler_prepared_free(fuse_compiler_prepared* prepared);

/** Makes what one run in flight has for itself; `options` may be null. Fails as Prepared::workspace. */
FUSE_COMPILER_C_API int fuse_compiler_workspace_new(const fuse_compiler_prepared* prepared,
                                                    const fuse_compiler_workspace_options* options,
                                                    fuse_compiler_workspace** out);
/** Frees the handle. The last run may be in flight, unless the memory is the caller's and is freed, too. */
FUSE_COMPILER_C_API void fuse_compiler_workspace_free(fuse_compiler_workspace* workspace);

/** Makes a stream of the device. */
FUSE_COMPILER_C_API int fuse_compiler_stream_new(const fuse_compiler_device* device,
                                                 fuse_compiler_stream** out);
/** Wraps the caller's CUstream, which stays the caller's; null is CUDA's default stream. cuda devices
   only, else FUSE_COMPILER_INVALID_ARGUMENT. */
FUSE_COMPILER_C_API int fuse_compiler_stream_wrap(const fuse_compiler_device* device, void* custream,
                                                  fuse_compiler_stream** out);
/** Waits for the work so far, and reports a failure of any of it. */
FUSE_COMPILER_C_API int fuse_compiler_stream_synchronize(fuse_compiler_stream* stream);
/** Its CUstream; null off CUDA. */
FUSE_COMPILER_C_API int fuse_compiler_stream_native(const fuse_compiler_stream* stream, void** out);
/** Frees the handle. */
FUSE_COMPILER_C_API void fuse_compiler_stream_free(fuse_compiler_stream* stream);

/** Device memory, 256-byte aligned, contents undefined. */
FUSE_COMPILER_C_API int fuse_compiler_buffer_new(const fuse_compiler_device* device, int64_t bytes,
                                                 fuse_compiler_buffer** out);
/** All of the buffer's memory. Valid until the buffer is freed. */
FUSE_COMPILER_C_API int fuse_compiler_buffer_view(const fuse_compiler_buffer* buffer,
                                                  fuse_compiler_view* out);
/** Copies host memory to all of the buffer and waits; work on it has to be over. FUSE_COMPILER_BUFFER_SIZE
   where the buffer has not `bytes` bytes. `from` may be null where `bytes` is 0. */
FUSE_COMPILER_C_API int fuse_compiler_buffer_upload(fuse_compiler_buffer* buffer, const void* from,
                                                    size_t bytes);
/** Copies all of the buffer to host memory and waits; work on it has to be over. FUSE_COMPILER_BUFFER_SIZE
   where the buffer has not `bytes` bytes. `to` may be null where `bytes` is 0. */
FUSE_COMPILER_C_API int fuse_compiler_buffer_download(const fuse_compiler_buffer* buffer, void* to,
                                                      size_t bytes);
/** Frees the memory too: work on it has to be over. */
FUSE_COMPILER_C_API void fuse_compiler_buffer_free(fuse_compiler_buffer* buffer);

/** Enqueues what fills `packed` from the parameters, as Prepared::pack. `buffers` has one view per slot,
   `count` of them; `packed` is null where packed_bytes is 0. It neither allocates nor waits, and looks at no
   view after it returns. */
FUSE_COMPILER_C_API int fuse_compiler_pack(const fuse_compiler_prepared* prepared,
                                           fuse_compiler_stream* stream, const fuse_compiler_view* buffers,
                                           size_t count, const fuse_compiler_view* packed);
/** Enqueues a run, as Prepared::run. `buffers` has one view per slot, `count` of them; `packed` is null where
   packed_bytes is 0. It neither allocates nor waits, and looks at no view after it returns. */
FUSE_COMPILER_C_API int fuse_compiler_run(const fuse_compiler_prepared* prepared,
                                          fuse_compiler_stream* stream, const fuse_compiler_view* buffers,
                                          size_t count, fuse_compiler_workspace* workspace,
                                          const fuse_compiler_view* packed);

#ifdef __cplusplus
}
#endif

#endif
