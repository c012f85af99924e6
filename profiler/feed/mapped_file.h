// SPDX-License-Identifier: MIT
//
// mapped file: a file, open and mapped in pieces, that a forked child does not keep. Locks on it belong to the open
// file, which lives as long as anybody has it open or mapped: a child that lives on would hold what its killed parent
// held. So in a child the file is closed, and private zeros lie where it was mapped.
//
// Another program may cut the file short while it is mapped; what is behind its end then raises SIGBUS in the thread
// that touches it. Private zeros are put there instead and the thread goes on; the owner of the mapping is notified. A
// SIGBUS of any other cause goes to the handler that was there before. Included by profiler/feed/ and profiler/drain/
// only.
#ifndef TIDE_PROFILER_FEED_MAPPED_FILE_H
#define TIDE_PROFILER_FEED_MAPPED_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct tide__file_map {
    void *base;  ///< at a page
    uint64_t at; ///< of the file
    size_t bytes;
} tide__file_map;

/// Stays where it is from open to close.
typedef struct tide__mapped_file {
    int fd;                    ///< -1: not open
    bool is_child;             ///< this process was forked after the file was opened
    bool is_writable;          ///< so are its maps
    dev_t dev;                 ///< which file it is: a program may close a descriptor that is not its own, and get the
    ino_t ino;                 ///< number again for another file
    _Atomic bool is_cut;       ///< part of what was mapped is gone; zeros lie there
    void (*on_cut)(void *ctx); ///< called in a signal handler each time that zeros were put; NULL: not needed
    void *ctx;
    tide__file_map *maps; ///< [n_maps], owned
    size_t n_maps, cap_maps;
    struct tide__mapped_file *next;
} tide__mapped_file;

/// open(2) with these, so that no fork comes between. on_cut and ctx are the caller's to set, before it maps. @return 0
/// or an errno; then it is not open
int tide__mapped_file_open(tide__mapped_file *m, const char *path, int flags, mode_t mode);
/// Map [at, at + bytes), shared; `at` may lie within a page larger than 4096 bytes. @return NULL and errno
void *tide__mapped_file_map(tide__mapped_file *m, uint64_t at, uint64_t bytes);
/// What tide__mapped_file_map returned.
void tide__mapped_file_unmap(tide__mapped_file *m, const void *data);
/// Unmaps all. Takes one that is not open.
void tide__mapped_file_close(tide__mapped_file *m);

/// Whether its descriptor is its file's still; opened again by `path` (absolute) if need be. False: it cannot be.
bool tide__mapped_file_has_fd(tide__mapped_file *m, const char *path);
/// Away from the numbers that programs use.
void tide__mapped_file_move_up(tide__mapped_file *m);

/// To be called before others ask to be told of forks who call the above with a lock held that they take before one.
/// @return 0 or an errno
int tide__mapped_file_prepare(void);

#endif
