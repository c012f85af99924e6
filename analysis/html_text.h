// SPDX-License-Identifier: MIT
//
// escape: foreign text made safe for each format. Bytes that are not UTF-8 become U+FFFD everywhere, so that every
// report is valid UTF-8, with any name.
#ifndef TIDE_ANALYSIS_HTML_TEXT_H
#define TIDE_ANALYSIS_HTML_TEXT_H

#include "core/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/// For element content and quoted attributes: & < > " ' as references, what is unsafe (core/base/utf8.h) as U+FFFD.
void tide_html_add(tide_text *out, const char *text);
/// The same for a line of several words: one that is written from right to left is isolated, so that what stands beside
/// it stays where it is. `text` may hold names.
void tide_html_add_line(tide_text *out, const char *text);
/// Whether some of it is written from right to left, or turns what follows.
bool tide_html_is_right_to_left(const char *text);
/// At most `max_chars` characters of it, the middle replaced by an ellipsis where it is longer.
void tide_html_add_cut(tide_text *out, const char *text, size_t max_chars);
/// The name of a file beside the page, as a reference to it (RFC 3986: all but unreserved characters as %XX).
void tide_html_add_href(tide_text *out, const char *file_name);
/// A JSON document inside <script>: no '<', '>' or '&' stays, so no name can end the element or open a comment.
void tide_html_add_json(tide_text *out, const char *json, size_t len);

#ifdef __cplusplus
}
#endif
#endif
