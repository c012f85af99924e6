// SPDX-License-Identifier: MIT
//
// terminal_guard: restores the terminal when a signal ends the program. TERM, INT and HUP end it with 128 + n; ABRT,
// SEGV and other signals of a crash restore the screen and then take their default action, so that a core dump or a
// sanitizer's report still happens. One terminal per process, hence static state.
#ifndef TIDE_TUI_TERMINAL_GUARD_H
#define TIDE_TUI_TERMINAL_GUARD_H

#ifdef __cplusplus
extern "C" {
#endif

/// Keep the terminal's modes and the signal actions of now, before the screen is taken.
void tide_tui_guard_prepare(int fd);
/// Add a control string that the reset must send; padding ("$<5>") is left out. Takes NULL.
void tide_tui_guard_add_reset(const char *control);
/// Install the handlers, after the screen was taken.
void tide_tui_guard_arm(void);
/// Put the actions back, after the screen was given back.
void tide_tui_guard_disarm(void);

#ifdef __cplusplus
}
#endif
#endif
