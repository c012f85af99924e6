// SPDX-License-Identifier: MIT
//
// unwind: who called, as return addresses. No lock, no allocation, no system call but the first look at a page; safe in
// a signal handler, and while another thread loads a library. For x86-64 and a C library that has _dl_find_object.
//
//     pc in a module with call frame information   its rule says where the caller's registers are; kept in a table
//     pc without (code made while running)         frame pointers, as far as they can be true
//     neither                                      the stack ends there, and says so
//
// The rules are those of .eh_frame (System V ABI; DWARF 5, section 6.4). Kept are those that compilers make: the frame
// lies at a distance from the stack pointer or the frame pointer. Memory is read only where the system says that it
// can be.
#ifndef TIDE_PRELOAD_UNWIND_H
#define TIDE_PRELOAD_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/collector.h"

/// Return addresses, the innermost first: of what called this library.
typedef struct preload_stack {
    uint32_t n;
    bool is_deeper;                       ///< there are more than were asked for
    bool is_cut;                          ///< it ends where no rule was found
    uint64_t calls[TIDE_MAX_STACK_DEPTH]; ///< [n] addresses in the instruction that called
} preload_stack;

/// The file that an address is in.
typedef struct preload_module {
    uint64_t begin, end; ///< its addresses
    uint64_t bias;       ///< address - bias is the address that the file itself gives it
    const void *map;     ///< the loader's own record of it
    const char *name;    ///< the loader's; "": the program
} preload_module;

/// Find out where this library and the loader are. Once, before all else.
void preload_unwind_begin(void);
/// At most `depth` calls. To be called from this library, whose own are left out.
void preload_unwind(uint32_t depth, preload_stack *out);
/// The call that came into this library. 0: none.
uint64_t preload_unwind_caller(void);
/// False: it is in none.
bool preload_module_of(uint64_t address, preload_module *out);
/// Whether an address is in the loader.
bool preload_is_loader(uint64_t address);
/// Whether a page can be read, as the system says.
bool preload_can_read(uint64_t address);
/// Rules that were kept are kept no more: a library went, and another may be in its place.
void preload_unwind_forget(void);

#endif
