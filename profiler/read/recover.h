// SPDX-License-Identifier: MIT
//
// recover: the parts of reading a damaged trace. Private to profiler/read.
//
//     file (or a private copy: log played in, first pages put right)
//       -> events that its tables still give, and the holes between them      recover_holes
//       -> what lies in pages that no tree leads to any more                  recover_pages
//       -> what blocks and snapshots say of events that are gone              recover_blocks
//       -> told anew, a gap for what is missing, leftover feeds               recover
#ifndef TIDE_PROFILER_READ_RECOVER_H
#define TIDE_PROFILER_READ_RECOVER_H

#include "profiler/read/convert.h"
#include "profiler/read/convert_stream.h"

// ---- events of version 3, rows and chunks as one list ----

/// Zero-initialise. The event at hand is `event` while `has`.
typedef struct tide__source {
    tide__stream rows, chunks;
    tide__event event;
    bool has, is_chunk;
} tide__source;

tide_status tide__source_open(tide__source *s, tide__in *in, tide_error *err) TIDE_NODISCARD;
tide_status tide__source_next(tide__source *s, tide_error *err) TIDE_NODISCARD;
void tide__source_close(tide__source *s);

// ---- holes ----

/// Numbers of events that no table gives.
typedef struct tide__hole {
    int64_t first, last;
    int64_t begin_ns, end_ns; ///< times of the events around it
} tide__hole;

/// Zero-initialise.
typedef struct tide__holes {
    tide__in *in;
    tide__hole *holes; ///< [n_holes] by number, disjoint; owned
    size_t n_holes, cap_holes;
    tide__event *found; ///< [n_found] that lie in holes; the first n_sorted by number, each once; owned
    size_t n_found, cap_found, n_sorted;
    tide__event *loose; ///< [n_loose] whose number is not known, only that their time lies inside a hole; owned
    size_t n_loose, cap_loose;
    int64_t first_event, last_event; ///< that tables give; 0: none
    int64_t first_kept;              ///< the first that the trace had: what lies before was dropped to keep it small
    uint64_t n_missing;              ///< in holes
    bool one_is_enough;              ///< whether there is anything to be found is all that is asked
} tide__holes;

/// Look through all events once.
tide_status tide__holes_find(tide__holes *h, tide__in *in, tide_error *err) TIDE_NODISCARD;
void tide__holes_deinit(tide__holes *h);
/// Whether some number of [first, last] is missing.
bool tide__holes_meet(const tide__holes *h, int64_t first, int64_t last);
/// Keep an event that lies in a hole, at a time that fits there; others are passed over.
tide_status tide__holes_offer(tide__holes *h, const tide__event *e, tide_error *err) TIDE_NODISCARD;
/// Keep an event of no known number whose time is that of no event outside of a hole.
tide_status tide__holes_offer_loose(tide__holes *h, const tide__event *e, tide_error *err) TIDE_NODISCARD;
/// All that was found by number, each once: what was sorted before goes before what was not.
void tide__holes_sort(tide__holes *h);
/// Loose events get numbers that are free at their time, and are among those that were found. Once, at the end.
tide_status tide__holes_place_loose(tide__holes *h, tide_error *err) TIDE_NODISCARD;

/// Offer what the pages of `file` hold, whether a tree leads to them or not.
tide_status tide__recover_pages(tide__holes *h, const char *file, tide_error *err) TIDE_NODISCARD;
/// Offer the events that table block and the snapshots tell of.
tide_status tide__recover_blocks(tide__holes *h, const tide__retell *runs, tide_error *err) TIDE_NODISCARD;

// ---- files ----

/// Where a damaged trace is read from. Zero-initialise.
typedef struct tide__patient {
    char *file;   ///< the trace itself, or the copy; owned
    bool is_copy; ///< removed at the end
    bool is_mended;
} tide__patient;

/// Find out from where `path` can be read. A log beside it is played into a copy; copies are made beside
/// `beside`, a file in the making in a folder that is ours alone.
tide_status tide__patient_admit(tide__patient *p, const char *path, const char *beside, tide_error *err) TIDE_NODISCARD;
/// Put the pages right that say which tables there are: those of every trace of today's version are the same.
tide_status tide__patient_mend(tide__patient *p, const char *path, const char *beside, tide_error *err) TIDE_NODISCARD;
void tide__patient_discharge(tide__patient *p);
/// Copy a file, holes as holes; nothing has the name `to`. TIDE_ERR_IO, TIDE_ERR_WRITE with the system's words.
tide_status tide__copy_file(const char *from, const char *to, tide_error *err) TIDE_NODISCARD;

#endif
