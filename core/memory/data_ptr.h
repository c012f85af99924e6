// SPDX-License-Identifier: MIT
//
// data pointer: an address and what is needed to give it back, apart from each other (PT-9 … PT-12).
//
//     plain memory      data == context                       release(context) frees
//     file mapping      data -> bytes of the file             context -> the mapping
//     foreign buffer    data -> their bytes                   context -> their object
//     bare pointer      data -> bytes of the caller's         no release: never freed
//
// When context is data, the address is all there is to know: the pointer is *simple*.
#ifndef TIDE_CORE_MEMORY_DATA_PTR_H
#define TIDE_CORE_MEMORY_DATA_PTR_H

#include "core/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Called once, with the context.
typedef void (*tide_release_fn)(void *context);

/// Owns what release would free. A value: move it with tide_data_ptr_take, do not copy the struct.
typedef struct tide_data_ptr {
    void *data;
    void *context;
    tide_release_fn release; ///< NULL: a bare pointer, nothing is ever freed
    tide_device device;
} tide_data_ptr;

/// NULL on the CPU.
#define TIDE_DATA_PTR_INIT ((tide_data_ptr){0})

/// An address that stays the caller's.
tide_data_ptr tide_data_ptr_bare(void *data, tide_device device);
tide_data_ptr tide_data_ptr_make(void *data, void *context, tide_release_fn release, tide_device device);
static inline void *tide_data_ptr_data(const tide_data_ptr *p) { return p->data; }
static inline void *tide_data_ptr_context(const tide_data_ptr *p) { return p->context; }
static inline tide_release_fn tide_data_ptr_release_fn(const tide_data_ptr *p) { return p->release; }
static inline tide_device tide_data_ptr_device(const tide_data_ptr *p) { return p->device; }
/// The context is the data itself: the address is enough to release it.
static inline bool tide_data_ptr_is_simple(const tide_data_ptr *p) { return p->context == p->data; }
/// A file mapping: its bytes cannot be written, and a block over it says so.
bool tide_data_ptr_is_read_only(const tide_data_ptr *p);
/// Move: returns *p and leaves NULL on the same device.
tide_data_ptr tide_data_ptr_take(tide_data_ptr *p);
/// Release what is owned, once; *p is NULL on the same device then. Harmless on a NULL pointer.
void tide_data_ptr_reset(tide_data_ptr *p);

/// A release that needs more than one word: fn(data, copy of `arg`). Slow (one host allocation
/// each): for awkward foreign owners, never used by the runtime itself (PT-12).
typedef void (*tide_release_closure)(void *data, void *arg);
/// @return TIDE_ERR_NOMEM; nothing is owned then
tide_status tide_data_ptr_with_closure(void *data, tide_device device, tide_release_closure fn, const void *arg,
                                       size_t arg_bytes, tide_data_ptr *out, tide_error *err) TIDE_NODISCARD;

/**
 * Map `size_bytes` of a file from `offset_bytes` on, read only; 0: up to its end. Data need not begin at a page, the
 * context keeps the mapping and unmaps it once. As with every mapping: cutting the file short meanwhile makes reading
 * what is gone a fatal signal (SIGBUS), and writing into the file may show. For files that no other program writes.
 *
 * @param mapped_bytes  out: how many; may be NULL
 * @return TIDE_ERR_IO (cannot be opened or mapped), TIDE_ERR_INVALID (range outside the file; the file is empty),
 *         TIDE_ERR_NOMEM
 */
tide_status tide_data_ptr_map_file(const char *path, uint64_t offset_bytes, size_t size_bytes, tide_data_ptr *out,
                                   size_t *mapped_bytes, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
