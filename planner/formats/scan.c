// SPDX-License-Identifier: MIT
//
// Lines of a text in memory, and what stands in them. See texts.h.
#include <string.h>

#include "core/base/checked.h"
#include "planner/formats/texts.h"

bool tide__scan_begins(const char *data, size_t len, const char *word) {
    size_t i = len >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (i < len && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n')) i++;
    const size_t n = strlen(word);
    return len - i >= n && memcmp(data + i, word, n) == 0;
}

bool tide__scan_line(tide__scan *s) {
    static const char mark[] = "\xEF\xBB\xBF";
    if (s->next == s->end) return false;
    const char *newline = memchr(s->next, '\n', (size_t)(s->end - s->next));
    s->at = s->next;
    s->stop = newline != NULL ? newline : s->end;
    s->next = newline != NULL ? newline + 1 : s->end;
    s->line++;
    if (s->stop > s->at && s->stop[-1] == '\r') s->stop--;
    if (s->line == 1) (void)tide__scan_eat(s, mark);
    return true;
}

bool tide__scan_eat(tide__scan *s, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(s->stop - s->at) < n || memcmp(s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

bool tide__scan_number(tide__scan *s, uint64_t *out) {
    const char *at = s->at;
    int64_t value = 0;
    for (; at < s->stop && *at >= '0' && *at <= '9'; at++) {
        if (!tide_mul_i64(value, 10, &value) || !tide_add_i64(value, *at - '0', &value)) return false;
    }
    if (at == s->at) return false;
    s->at = at;
    *out = (uint64_t)value;
    return true;
}

bool tide__scan_until(tide__scan *s, const char *word, const char **text, size_t *len) {
    const size_t n = strlen(word);
    for (const char *at = s->at; (size_t)(s->stop - at) >= n; at++) {
        if (memcmp(at, word, n) != 0) continue;
        *text = s->at;
        *len = (size_t)(at - s->at);
        s->at = at + n;
        return true;
    }
    return false;
}

tide_status tide__scan_fault(const tide__scan *s, size_t line, tide_status st) {
    if (line > 0)
        tide_error_where(s->err, "%s:%zu", s->path, line);
    else
        tide_error_where(s->err, "%s", s->path);
    return st;
}
