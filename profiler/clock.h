// SPDX-License-Identifier: MIT
//
// clock: time stamps that cost a few nanoseconds, which their reader turns into CLOCK_MONOTONIC.
//
// Reading CLOCK_MONOTONIC costs 20 to 25 ns on the machines this was measured on, the counter behind it 9. So a
// producer notes the counter, and the drain converts: it reads both clocks now and then, and between two such pairs
// the counter is a straight line. The processor must say that its counter runs at one rate (invariant TSC), and either
// the kernel keeps its own clock by it (clocksource tsc), or all cores were asked and count alike (under a hypervisor
// whose clock the kernel takes, such as kvm-clock; see tide__clock_check_cores). Else, and on other architectures,
// there are no ticks, and producers read CLOCK_MONOTONIC. For profiler/ and the program.
#ifndef TIDE_PROFILER_CLOCK_H
#define TIDE_PROFILER_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIDE__BOOT_ID_BYTES = 40 };
/// Which boot of which machine this is: a CLOCK_MONOTONIC is one clock for as long as that is the same. "": not known.
/// Takes no memory.
void tide__clock_boot_id(char out[TIDE__BOOT_ID_BYTES]);
/// What, added to CLOCK_MONOTONIC, is now the time since 1970 in ns, by the machine's setting of its date.
int64_t tide__clock_wall_ns(void);

/// Both clocks at one moment.
typedef struct tide__tick_pair {
    uint64_t ticks, ns;
} tide__tick_pair;

/// Set to 1 for programs that are started by one that has checked the cores.
#define TIDE__TICKS_ENV "TIDEMARK_TICKS"

/// Whether producers note ticks: they are of use on this machine, and TIDE_NO_TICKS=1 in the environment does not say
/// no.
bool tide__clock_has_ticks(void);

/// Where the kernel takes its clock from a hypervisor, find out whether the counters of all cores that this thread may
/// run on agree, and say so to this process and, through the environment, to those that it starts. The thread visits
/// each core, 0.1 ms each; where the kernel trusts the counter itself, or no processor has one, nothing is done. To be
/// called before there are further threads.
void tide__clock_check_cores(void);
/// Whether readings of several cores lie on the line through the first and the last, which are of one core, by at most
/// 250 ns: half of what a thread needs to hand something over to another core. False for less than 3.
bool tide__clock_cores_agree(const tide__tick_pair *pairs, size_t n);

/// The counter; 0 where there is none. (A builtin, because x86intrin.h has 70,000 lines and all of the profiler would
/// read them.)
static inline uint64_t tide__ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/// As near to one moment as the best of several readings, whatever producers note. Where there is no counter both are
/// the time in ns.
void tide__clock_pair(tide__tick_pair *out);
/// A pair with a second one some microseconds or milliseconds later, for a rate to begin with (1 ms).
void tide__clock_two_pairs(tide__tick_pair *a, tide__tick_pair *b);
/// Time of `ticks` on the line through `a` and `b` (b later than a), also before and behind them; at least 0, at most
/// 2^63 - 1, whatever the numbers. Pairs that make no line (b not later than a) give a's time.
uint64_t tide__clock_ns(const tide__tick_pair *a, const tide__tick_pair *b, uint64_t ticks);

#endif
