// SPDX-License-Identifier: MIT
//
// A ring of lines. See messages.h. Lines come from any thread.
#include "tui/term/messages.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/host_alloc.h"
#include "core/base/log.h"

enum { LINE = 512 };

typedef struct message {
    tide_log_level level;
    char text[LINE];
} message;

struct tide_tui_messages {
    pthread_mutex_t lock;
    message ring[TIDE_TUI_MAX_MESSAGES];
    size_t n, n_told; ///< lines that came, and that were asked for
    tide_log_fn before;
    void *before_ctx;
    tide_log_level before_level;
};

static message *at(tide_tui_messages *m, size_t i) { return &m->ring[i % TIDE_TUI_MAX_MESSAGES]; }
static size_t first_kept(const tide_tui_messages *m) {
    return m->n > TIDE_TUI_MAX_MESSAGES ? m->n - TIDE_TUI_MAX_MESSAGES : 0;
}

static void hear(void *ctx, tide_log_level level, const char *line) {
    tide_tui_messages *m = ctx;
    pthread_mutex_lock(&m->lock);
    message *to = at(m, m->n++);
    to->level = level;
    snprintf(to->text, sizeof to->text, "%s", line);
    for (char *c = to->text; *c != '\0'; c++)
        if (*c == '\n') *c = ' ';
    pthread_mutex_unlock(&m->lock);
}

tide_tui_messages *tide_tui_messages_take(void) {
    tide_tui_messages *m = tide_host_calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    pthread_mutex_init(&m->lock, NULL);
    tide_log_get(&m->before, &m->before_ctx, &m->before_level);
    const bool hears_more = m->before != NULL && m->before_level > TIDE_LOG_WARN;
    tide_log_set(hear, m, hears_more ? m->before_level : TIDE_LOG_WARN);
    return m;
}

void tide_tui_messages_give_back(tide_tui_messages *m) {
    if (m == NULL) return;
    const size_t from = first_kept(m);
    tide_log_set(m->before, m->before_ctx, m->before_level);
    if (from > 0) tide_log(TIDE_LOG_WARN, "%zu earlier lines are not kept", from);
    for (size_t i = from; i < m->n; i++) tide_log(at(m, i)->level, "%s", at(m, i)->text);
    pthread_mutex_destroy(&m->lock);
    tide_host_free(m);
}

size_t tide_tui_messages_news(tide_tui_messages *m, char *buf, size_t buf_bytes, bool *is_error) {
    if (m == NULL) return 0;
    pthread_mutex_lock(&m->lock);
    const size_t from = m->n_told > first_kept(m) ? m->n_told : first_kept(m), n = m->n - m->n_told;
    const message *gravest = NULL;
    for (size_t i = from; i < m->n; i++) {
        if (gravest == NULL || at(m, i)->level <= gravest->level) gravest = at(m, i);
    }
    if (gravest != NULL) snprintf(buf, buf_bytes, "%s", gravest->text);
    *is_error = gravest != NULL && gravest->level == TIDE_LOG_ERROR;
    m->n_told = m->n;
    pthread_mutex_unlock(&m->lock);
    return n;
}

bool tide_tui_messages_has_news(tide_tui_messages *m) {
    if (m == NULL) return false;
    pthread_mutex_lock(&m->lock);
    const bool has = m->n > m->n_told;
    pthread_mutex_unlock(&m->lock);
    return has;
}

void tide_tui_messages_list(tide_tui_messages *m, tide_text *out) {
    static const char *const words[] = {[TIDE_LOG_ERROR] = "error", [TIDE_LOG_WARN] = "warning"};
    if (m == NULL) return;
    pthread_mutex_lock(&m->lock);
    const size_t from = first_kept(m);
    if (from > 0) tide_text_addf(out, "-- %zu earlier lines are not kept\n", from);
    for (size_t i = from; i < m->n; i++) {
        const tide_log_level level = at(m, i)->level;
        tide_text_addf(out, "%s: %s\n", level <= TIDE_LOG_WARN ? words[level] : "note", at(m, i)->text);
    }
    pthread_mutex_unlock(&m->lock);
}
