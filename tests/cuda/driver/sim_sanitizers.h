// SPDX-License-Identifier: MIT
//
// Which sanitizer this is built with: SIM_ASAN, SIM_TSAN. gcc says it by a macro, clang by a feature.
#ifndef TIDE_TESTS_CUDA_DRIVER_SIM_SANITIZERS_H
#define TIDE_TESTS_CUDA_DRIVER_SIM_SANITIZERS_H

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SIM_ASAN 1
#else
#define SIM_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SIM_TSAN 1
#else
#define SIM_TSAN 0
#endif

#endif
