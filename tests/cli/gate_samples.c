// SPDX-License-Identifier: MIT
//
// The seven outputs of results made by hand, as files for gate_outputs.py: gate_samples DIR writes NAME.txt, .md,
// .json, .xml, .sarif, .html and .commands for each, and .raw: the name that stands in all its places.
#include "core/base/host_alloc.h"
#include "tests/gate/outputs_sample.h"

static const char *dir;

static bool write_text(const char *name, const char *ending, tide_text *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", dir, name, ending);
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && !text->failed && fwrite(tide_text_str(text), 1, text->len, file) == text->len;
    if (file != NULL && fclose(file) != 0) ok = false;
    if (!ok) fprintf(stderr, "cannot write '%s'\n", path);
    tide_text_deinit(text);
    return ok;
}

static bool write_all(const char *name, const char *foreign, const tide_gate_result *r) {
    tide_text text = {0}, markdown = {0}, junit = {0}, commands = {0}, raw = {0}, json = {0}, sarif = {0}, page = {0};
    tide_text_add(&raw, foreign);
    tide_gate_print_text(r, NULL, &text);
    tide_gate_print_markdown(r, NULL, &markdown);
    tide_gate_print_junit(r, &junit);
    tide_gate_print_annotations(r, &commands);
    tide_gate_print_json(r, &json);
    tide_gate_print_sarif(r, &sarif);
    tide_gate_print_html(r, NULL, &page);
    const bool texts[] = {write_text(name, "txt", &text),    write_text(name, "md", &markdown),
                          write_text(name, "xml", &junit),   write_text(name, "commands", &commands),
                          write_text(name, "raw", &raw),     write_text(name, "json", &json),
                          write_text(name, "sarif", &sarif), write_text(name, "html", &page)};
    return texts[0] && texts[1] && texts[2] && texts[3] && texts[4] && texts[5] && texts[6] && texts[7];
}

static bool write_hostile(sample *s) {
    char name[32];
    for (size_t i = 0; i < SAMPLE_HOSTILE; i++) {
        snprintf(name, sizeof name, "hostile-%02zu", i);
        sample_mixed(s, sample_hostile[i]);
        if (!write_all(name, sample_hostile[i], &s->r)) return false;
        snprintf(name, sizeof name, "hostile-nothing-%02zu", i);
        sample_nothing(s, sample_hostile[i]);
        if (!write_all(name, sample_hostile[i], &s->r)) return false;
    }
    static char longest[10001];
    memset(longest, 'x', sizeof longest - 1);
    sample_mixed(s, longest);
    return write_all("hostile-long", longest, &s->r);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    dir = argv[1];
    sample *s = tide_host_alloc(sizeof *s);
    if (s == NULL) return 1;
    sample_mixed(s, "net");
    bool ok = write_all("mixed", "net", &s->r);
    sample_clean(s, "net");
    ok = ok && write_all("clean", "net", &s->r);
    sample_worse(s, "net");
    ok = ok && write_all("worse", "net", &s->r);
    sample_nothing(s, "net");
    ok = ok && write_all("nothing", "net", &s->r);
    static char wide[101];
    memset(wide, 'n', sizeof wide - 1);
    sample_many(s, wide, 60, 30);
    ok = ok && write_all("many", wide, &s->r);
    ok = ok && write_hostile(s);
    tide_host_free(s);
    return ok ? 0 : 1;
}
