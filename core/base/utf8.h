// SPDX-License-Identifier: MIT
//
// utf8: one decoder for all code that reads foreign names. What is well-formed is Table 3-7 of the Unicode Standard
// (16.0, section 3.9): no overlong forms, no surrogates, nothing above U+10FFFF.
#ifndef TIDE_CORE_BASE_UTF8_H
#define TIDE_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// In place of a code point: a byte that begins no well-formed character.
#define TIDE_UTF8_BAD UINT32_MAX
/// U+FFFD, what such a byte is shown as.
#define TIDE_UTF8_REPLACEMENT "\xEF\xBF\xBD"

/**
 * Read the character at `text`, which ends with NUL; never reads past the NUL.
 *
 * @param cp  out: its code point, or TIDE_UTF8_BAD
 * @return bytes to move on: 1 to 4, and 1 for a bad byte, so that each byte of a broken sequence is bad by itself; at
 *         the end of `text` 0, with *cp 0
 */
size_t tide_utf8_decode(const char *text, uint32_t *cp);
/// Bytes of `cp` into `out`, without a NUL; U+FFFD for what is no character. @return 1 to 4
size_t tide_utf8_encode(uint32_t cp, char out[4]);
/// C0 and C1 controls and DEL.
bool tide_utf8_is_control(uint32_t cp);
/// Marks, embeddings, overrides and isolates that turn the direction of the text around them (Unicode Standard Annex
/// 9): invisible, and what is shown after them may read otherwise than it is.
bool tide_utf8_turns_direction(uint32_t cp);

/// The rule of the house for text that comes out of files: whether a code point must not be shown as it is, in any
/// output. Controls, what is no character (TIDE_UTF8_BAD, noncharacters), what turns the direction of text, and what is
/// not seen: zero widths, separators of lines and paragraphs, tags, interlinear marks. A line end and a tab are
/// controls too; where they are the output's own, they are not asked about.
bool tide_utf8_is_unsafe(uint32_t cp);

/// What a spreadsheet would take for a formula, a command or a number with a sign (OWASP, "CSV Injection"): names that
/// begin so get a ' in front in CSV. "-" alone is none.
bool tide_utf8_is_formula(const char *text);

struct tide_text;
/// `text` with U+FFFD in place of what is unsafe.
void tide_utf8_add_clean(struct tide_text *out, const char *text);
/// `text` for a JSON string, without its quotes: exact for a parser, and what is unsafe escaped (\u202e). Bytes that
/// are no UTF-8 become U+FFFD: JSON has no other strings.
void tide_utf8_add_json(struct tide_text *out, const char *text);
/// A whole JSON document of `len` bytes, whose strings another library has written: what is unsafe in them is escaped.
void tide_utf8_add_json_document(struct tide_text *out, const char *json, size_t len);

#ifdef __cplusplus
}
#endif
#endif
