// SPDX-License-Identifier: MIT
//
// Regular expressions over the names of sites. regexec takes a microsecond where strstr takes twenty nanoseconds, so a
// text that every match must contain is looked for first:
//
//     conv[0-9]+_out      "conv", then regexec where it is found
//     conv1_out           the text is all of it: regexec is not asked
#include <ctype.h>
#include <string.h>

#include "analysis/filter_internal.h"
#include "core/base/host_alloc.h"

/// Characters that stand for themselves and nothing else, in an extended expression.
static bool is_plain(char c) { return isalnum((unsigned char)c) || strchr("_-/:,;=@#%&~<> '\"", c) != NULL; }

/// The longest run of plain characters of which none may be absent; an alternative anywhere, or a group, which may be
/// optional, makes it unsafe to say.
static void find_literal(const char *text, char *out, bool *is_all) {
    size_t best = 0, best_len = 0, run = 0;
    *is_all = true;
    for (size_t i = 0;; i++) {
        const char c = text[i];
        const bool plain = c != '\0' && is_plain(c);
        // what is repeated or optional is not part of the run
        const bool ends = !plain || (text[i + 1] != '\0' && strchr("*?{", text[i + 1]) != NULL);
        if (c != '\0' && !plain) *is_all = false;
        if (!ends) continue;
        if (i - run > best_len) {
            best = run;
            best_len = i - run;
        }
        run = i + 1;
        if (c == '\0') break;
    }
    if (strpbrk(text, "|()\\[{") != NULL) best_len = 0;
    for (size_t i = 0; i < best_len; i++) out[i] = (char)tolower((unsigned char)text[best + i]);
    out[best_len] = '\0';
}

tide_status tide__pattern_make(const char *text, tide__pattern *out, tide_error *err) {
    *out = (tide__pattern){0};
    out->literal = tide_host_alloc(strlen(text) + 1);
    if (out->literal == NULL) return TIDE_NO_MEMORY(err, "for an expression");
    find_literal(text, out->literal, &out->is_plain);
    const int rc = regcomp(&out->regex, text, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (rc == 0) {
        out->has_regex = true;
        return TIDE_OK;
    }
    char words[128];
    regerror(rc, &out->regex, words, sizeof words);
    tide__pattern_deinit(out);
    return TIDE_FAIL(err, TIDE_ERR_INVALID, "cannot read the expression '%s': %s", text, words);
}

void tide__pattern_deinit(tide__pattern *p) {
    if (p->has_regex) regfree(&p->regex);
    tide_host_free(p->literal);
    *p = (tide__pattern){0};
}

bool tide__pattern_matches(const tide__pattern *p, const tide_item_site *site, const char *folded, bool name,
                           bool owner) {
    if (p->literal[0] != '\0') {
        const char *at = strstr(folded, p->literal);
        if (at == NULL) return false;
        if (p->is_plain && name && owner) return true;
    }
    return (name && regexec(&p->regex, site->name, 0, NULL, 0) == 0) ||
           (owner && regexec(&p->regex, site->owner, 0, NULL, 0) == 0);
}

// ---- searching ----

/// Names of items that were made by hand have no texts in lower case yet.
static tide_status folded_names(const tide_items *items, tide__site_names *own, const tide__site_names **out) {
    *out = tide__items_names(items);
    if (*out != NULL) return TIDE_OK;
    TIDE_TRY(tide__site_names_make(items, own));
    *out = own;
    return TIDE_OK;
}

tide_status tide_items_search(const tide_items *items, const char *regex, uint8_t **bits, size_t *n_items,
                              tide_error *err) {
    tide__pattern p;
    TIDE_TRY(tide__pattern_make(regex, &p, err));
    tide__site_names own = {0};
    const tide__site_names *names;
    tide_status st = folded_names(items, &own, &names);
    uint8_t *found = tide_host_calloc(items->n_sites / 8 + 1, 1);
    if (found == NULL) st = TIDE_ERR_NOMEM;
    for (size_t i = 0; st == TIDE_OK && i < items->n_sites; i++) {
        if (tide__pattern_matches(&p, &items->sites[i], names->folded + names->folded_at[i], true, true))
            found[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    tide__site_names_deinit(&own);
    tide__pattern_deinit(&p);
    if (st != TIDE_OK) {
        tide_host_free(found);
        return TIDE_FAIL(err, st, "no memory for a search");
    }
    const tide__items_inside *in = items->inside;
    *n_items = 0;
    for (size_t i = 0; in != NULL && i < items->n_sites; i++) *n_items += tide__bit(found, i) ? in->site_items[i] : 0;
    for (size_t i = 0; in == NULL && i < items->n; i++) *n_items += tide__bit(found, tide_items_site_of(items, i));
    *bits = found;
    return TIDE_OK;
}
