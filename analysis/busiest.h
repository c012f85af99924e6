// SPDX-License-Identifier: MIT
//
// busiest: which of the moments at which memory is highest is worth looking at first. A planned run takes its buffer
// before the first step and gives it back after the last, so that by its blocks it is as high all the while: then the
// moment at which most of the buffer is used.
#ifndef TIDE_ANALYSIS_BUSIEST_H
#define TIDE_ANALYSIS_BUSIEST_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The peak of a plan and of a run without one; of a planned run the moment at which the plan has most alive, if the
/// run is as high there as anywhere. Costs a look at the predicted curve. TIDE_ERR_NOMEM and what reading a trace says;
/// *out is the peak then.
tide_status tide_subject_busiest(tide_subject *s, tide_moment *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
