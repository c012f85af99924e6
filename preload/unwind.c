// SPDX-License-Identifier: MIT
//
// The walk from call to call. See unwind.h; the rules come from unwind_rule.c.
#include "preload/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload.h"
#include "preload/unwind_rule.h"

#if TIDE_HAS_STACKS

enum { PAGE_BITS = 12, WORD = 8, RULE_BITS = 14, MAX_OWN = 16 };

// ---- what can be read ----
//
// The kernel reads a set of signals before it finds that it was asked for nothing that there is: EFAULT where it cannot
// read. No filter of system calls refuses this one.

static bool ask_kernel(uint64_t address) {
    enum { NO_SUCH_WAY = -1, SET_BYTES = 8 };
    // The function would set errno.
    long result;
    register long size __asm__("r10") = SET_BYTES;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_rt_sigprocmask), "D"((long)NO_SUCH_WAY), "S"(address & ~(uint64_t)(WORD - 1)),
                       "d"(0L), "r"(size)
                     : "rcx", "r11", "memory");
    enum { FAULT = 14 };
    return result != -FAULT;
}

bool preload_can_read(uint64_t address) {
    preload_pages *pages = &preload_self.pages;
    const uint64_t page = address >> PAGE_BITS;
    uint64_t *kept = &pages->known[page % PRELOAD_KNOWN_PAGES];
    if (__builtin_expect(*kept == page && page != 0, 1)) return true; // 0: nothing is kept there
    if (page == 0 || !ask_kernel(address)) return false;
    *kept = page;
    return true;
}

/// A word of the stack. False: it is not there.
static inline bool read_word(uint64_t address, uint64_t *out) {
    if (address % WORD != 0 || !preload_can_read(address)) return false;
    memcpy(out, (const void *)address, sizeof *out); // NOLINT(performance-no-int-to-ptr)
    return true;
}

// ---- where things are ----

static struct { uint64_t own_begin, own_end, loader_begin, loader_end; } places;

bool preload_module_of(uint64_t address, preload_module *out) {
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) != 0) return false; // NOLINT(performance-no-int-to-ptr)
    *out = (preload_module){.begin = (uintptr_t)found.dlfo_map_start,
                            .end = (uintptr_t)found.dlfo_map_end,
                            .bias = found.dlfo_link_map->l_addr,
                            .map = found.dlfo_link_map,
                            .name = found.dlfo_link_map->l_name != NULL ? found.dlfo_link_map->l_name : ""};
    return true;
}

/// A function of the loader's own.
void *__tls_get_addr(void *index);

void preload_unwind_begin(void) {
    preload_module m;
    if (preload_module_of((uintptr_t)preload_unwind_begin, &m)) {
        places.own_begin = m.begin;
        places.own_end = m.end;
    }
    if (preload_module_of((uintptr_t)__tls_get_addr, &m)) {
        places.loader_begin = m.begin;
        places.loader_end = m.end;
    }
}

bool preload_is_loader(uint64_t address) {
    return address - places.loader_begin < places.loader_end - places.loader_begin;
}

static inline bool is_own(uint64_t address) { return address - places.own_begin < places.own_end - places.own_begin; }

// ---- rules that were used ----
//
// Of all threads, without a lock: an entry is two words, and only what the two of them say together is believed.

static struct {
    _Atomic uint64_t key_and_rule, rule; ///< the first is key ^ rule
} kept[1 << RULE_BITS];
static _Atomic uint32_t generation;

void preload_unwind_forget(void) { atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed); }

static preload_rule rule_of(uint64_t call) {
    enum { ADDRESS_BITS = 48 };
    const uint64_t key = call ^ (uint64_t)atomic_load_explicit(&generation, memory_order_relaxed) << ADDRESS_BITS;
    const size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - RULE_BITS));
    const uint64_t known = atomic_load_explicit(&kept[i].rule, memory_order_relaxed);
    preload_rule rule;
    _Static_assert(sizeof rule == sizeof known, "a rule is one word");
    if (__builtin_expect(
            known != 0 && (atomic_load_explicit(&kept[i].key_and_rule, memory_order_relaxed) ^ known) == key, 1)) {
        memcpy(&rule, &known, sizeof rule);
        return rule;
    }
    rule = preload_find_rule(call);
    uint64_t word;
    memcpy(&word, &rule, sizeof word);
    atomic_store_explicit(&kept[i].rule, word, memory_order_relaxed);
    atomic_store_explicit(&kept[i].key_and_rule, key ^ word, memory_order_relaxed);
    return rule;
}

// ---- from call to call ----

typedef struct frame {
    uint64_t call; ///< in the instruction that called
    uint64_t sp, fp;
} frame;

typedef enum stepped { STEPPED, OUTERMOST, NO_WAY } stepped;

/// Whether an instruction that calls ends there: what is no return address hardly ever does.
static bool is_behind_call(uint64_t address) {
    enum { LONGEST = 7, CALL_NEAR = 5, CALL_NEAR_CODE = 0xe8, GROUP_5 = 0xff, CALL_OF_GROUP = 2 };
    if (!preload_can_read(address - LONGEST) || !preload_can_read(address - 1)) return false;
    const uint8_t *end = (const uint8_t *)address; // NOLINT(performance-no-int-to-ptr)
    if (end[-CALL_NEAR] == CALL_NEAR_CODE) return true;
    for (int n = 2; n <= LONGEST; n++)
        if (end[-n] == GROUP_5 && (end[1 - n] >> 3 & 7) == CALL_OF_GROUP) return true;
    return false;
}

/// By frame pointers: the older one and the return address lie at it. They may be anything: what cannot be is refused.
static stepped step_by_chain(frame *f) {
    uint64_t older, back;
    if (f->fp < f->sp || !read_word(f->fp, &older) || !read_word(f->fp + WORD, &back)) return NO_WAY;
    if (back == 0) return OUTERMOST;
    if (!is_behind_call(back)) return NO_WAY;
    // In a file what the register was for is the caller's affair; elsewhere frames lie one behind the other.
    preload_module unused;
    if (older != 0 && older <= f->fp && !preload_module_of(back, &unused)) return NO_WAY;
    *f = (frame){.call = back - 1, .sp = f->fp + 2 * WORD, .fp = older};
    return STEPPED;
}

/// The registers that the signal interrupted, where the kernel has put them.
static stepped step_out_of_signal(frame *f) {
    enum { AT_FP = 120, AT_SP = 160, AT_PC = 168 }; // of ucontext_t
    uint64_t sp, fp, pc;
    if (!read_word(f->sp + AT_FP, &fp) || !read_word(f->sp + AT_SP, &sp) || !read_word(f->sp + AT_PC, &pc))
        return NO_WAY;
    *f = (frame){.call = pc, .sp = sp, .fp = fp};
    return STEPPED;
}

static stepped step_by_rule(frame *f, preload_rule rule) {
    uint64_t begin = 0, back, fp = f->fp;
    if (rule.kind == PRELOAD_RULE_SP)
        begin = f->sp + (uint64_t)(int64_t)rule.offset;
    else if (rule.kind == PRELOAD_RULE_FP)
        begin = f->fp + (uint64_t)(int64_t)rule.offset;
    else if (!read_word(f->fp + (uint64_t)(int64_t)rule.offset, &begin))
        return NO_WAY;
    if (begin <= f->sp || !read_word(begin - WORD, &back)) return NO_WAY;
    const uint64_t distance = (uint64_t)((int64_t)rule.fp_words * WORD);
    if (rule.fp_kind == PRELOAD_FP_BELOW && !read_word(begin + distance, &fp)) return NO_WAY;
    if (rule.fp_kind == PRELOAD_FP_AT_FP && !read_word(f->fp + distance, &fp)) return NO_WAY;
    if (back == 0) return OUTERMOST;
    *f = (frame){.call = back - 1, .sp = begin, .fp = fp};
    return STEPPED;
}

static stepped step(frame *f, preload_rule rule) {
    switch (rule.kind) {
    case PRELOAD_RULE_SP:
    case PRELOAD_RULE_FP:
    case PRELOAD_RULE_AT_FP:
        return step_by_rule(f, rule);
    case PRELOAD_RULE_SIGNAL:
        return step_out_of_signal(f);
    case PRELOAD_RULE_CHAIN:
        return step_by_chain(f);
    default:
        return rule.kind == PRELOAD_RULE_END ? OUTERMOST : NO_WAY;
    }
}

/// Out of this library, which is compiled with frame pointers. False: it did not end.
static inline bool leave_own(const void *here, frame *f) {
    const uint64_t *at = here;
    for (int i = 0; i < MAX_OWN; i++) {
        *f = (frame){.call = at[1] - 1, .sp = (uintptr_t)(at + 2), .fp = at[0]};
        if (!is_own(f->call)) return true;
        at = (const uint64_t *)at[0]; // NOLINT(performance-no-int-to-ptr)
    }
    return false;
}

uint64_t preload_unwind_caller(void) {
    frame f;
    return leave_own(__builtin_frame_address(0), &f) ? f.call : 0;
}

void preload_unwind(uint32_t depth, preload_stack *out) {
    frame f;
    out->n = 0;
    out->is_deeper = out->is_cut = false;
    const uint32_t now = atomic_load_explicit(&preload_n_unmapped, memory_order_relaxed);
    if (__builtin_expect(preload_self.pages.n_unmapped != now, 0)) {
        preload_self.pages = (preload_pages){.n_unmapped = now}; // a page may be another one, or none
    }
    stepped how = leave_own(__builtin_frame_address(0), &f) ? STEPPED : NO_WAY;
    bool is_interrupted = false;
    while (how == STEPPED && out->n < depth) {
        const preload_rule rule = rule_of(f.call);
        // What lies there may be no return address, where a rule was wrong: a function that is known proves it.
        if (__builtin_expect(rule.kind == PRELOAD_RULE_CHAIN, 0) && !is_interrupted && !is_behind_call(f.call + 1)) {
            how = NO_WAY;
            break;
        }
        out->calls[out->n++] = f.call;
        is_interrupted = rule.kind == PRELOAD_RULE_SIGNAL;
        how = step(&f, rule);
    }
    out->is_deeper = how == STEPPED;
    out->is_cut = how == NO_WAY;
}

#else

// Of a processor or a C library that none of this is for. `tidemark record --stacks` says so.

void preload_unwind_begin(void) {}
uint64_t preload_unwind_caller(void) { return 0; }
bool preload_module_of(uint64_t address, preload_module *out) { return (void)address, (void)out, false; }
bool preload_is_loader(uint64_t address) { return (void)address, false; }
bool preload_can_read(uint64_t address) { return (void)address, false; }
void preload_unwind_forget(void) {}
void preload_unwind(uint32_t depth, preload_stack *out) {
    (void)depth;
    *out = (preload_stack){0};
}

#endif
