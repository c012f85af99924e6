// SPDX-License-Identifier: MIT
//
// feed_frames: call stacks in a feed by address (format.h): the frames of which they consist, each once, and events
// that name one. Private to profiler/ and preload/.
#ifndef TIDE_PROFILER_FEED_FEED_FRAMES_H
#define TIDE_PROFILER_FEED_FEED_FRAMES_H

#include "profiler/feed/feed.h"

/// Number of a file that calls lie in, by "BUILDID PATH" ("-" for a build id that it does not have). Found, or put into
/// the log. Any thread; not in a signal handler. 0: refused, as the events of feed.h.
uint32_t tide__feed_module(tide__feed *f, const char *text);
/// Number of a frame: a call at `address` of a module (0: none, then TIDE__FRAME_...), called by frame `parent` (0: it
/// is the outermost). 0: refused, or there are TIDE__FEED_MAX_FRAMES.
uint32_t tide__feed_frame(tide__feed *f, uint32_t parent, uint32_t module, uint64_t address);
/// As tide__feed_memory, of an event by address, with the innermost frame of who asked (0: not known).
void tide__feed_memory_in(tide__feed *f, const tide_memory_event *e, uint32_t frame);

#endif
