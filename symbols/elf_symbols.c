// SPDX-License-Identifier: MIT
//
// Names of native code by elfutils' libdw: DWARF where the file, or one with its debug information, has it; else the
// table of symbols. See profiler/symbols.h.
//
//     address -> unit -> innermost scope, outwards:  inlined f (line of the address)
//                                                    inlined g (line at which f was called)
//                                                    function h (line at which g was called)
//
// A name is given for sure or not at all: a symbol counts for the bytes that it says it has.
#include "profiler/symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT const tide_symbols_plugin *tidemark_symbols_plugin(void);

/// Of libstdc++. *status 0: the name in the source, to be given to free.
char *__cxa_demangle(const char *name, char *room, size_t *bytes, int *status);

/// Addresses of a unit.
typedef struct range {
    Dwarf_Addr begin, end;
    Dwarf_Off unit;
} range;

typedef struct symbol {
    GElf_Addr begin;
    GElf_Xword bytes;
    const char *name; // of the file's table
    int rank;
} symbol;

typedef struct elf_file {
    Dwfl *session;
    Dwfl_Module *module;
    Dwarf_Addr bias; // address here - address in the file
    range *ranges;   // [n_ranges] sorted by begin; made when the file itself has no such list
    size_t n_ranges, cap_ranges;
    bool has_ranges;
    symbol *symbols; // [n_symbols] the same of functions by symbol
    size_t n_symbols, cap_symbols;
    bool has_symbols;
} elf_file;

// ---- open ----

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = dwfl_standard_find_debuginfo,
                                         .section_address = dwfl_offline_section_address};

static bool has_build_id(Dwfl_Module *module, const char *wanted, char *why, size_t why_bytes) {
    const unsigned char *bits;
    GElf_Addr unused;
    const int n = dwfl_module_build_id(module, &bits, &unused);
    char text[129] = "-";
    for (int i = 0; i < n && i < 64; i++) snprintf(text + (size_t)2 * (size_t)i, 3, "%02x", bits[i]);
    if (strcmp(text, wanted) == 0) return true;
    snprintf(why, why_bytes, "it is another file now than the one that ran (build id %.16s, not %.16s)", text, wanted);
    return false;
}

static void close_file(void *file) {
    elf_file *f = file;
    if (f == NULL) return;
    if (f->session != NULL) dwfl_end(f->session);
    free(f->ranges);
    free(f->symbols);
    free(f);
}

static bool open_module(elf_file *f, const char *path, const char *build_id, char *why, size_t why_bytes) {
    f->session = dwfl_begin(&callbacks);
    f->module = f->session != NULL ? dwfl_report_offline(f->session, path, path, -1) : NULL;
    if (f->module == NULL) {
        snprintf(why, why_bytes, "%s", dwfl_errmsg(-1));
        return false;
    }
    dwfl_report_end(f->session, NULL, NULL);
    return dwfl_module_getelf(f->module, &f->bias) != NULL && has_build_id(f->module, build_id, why, why_bytes);
}

static void *open_file(const char *path, const char *build_id, char *why, size_t why_bytes) {
    struct stat info;
    const bool is_there = stat(path, &info) == 0;
    snprintf(why, why_bytes, "%s", is_there ? "it is no file" : "it is not there any more");
    if (!is_there || !S_ISREG(info.st_mode)) return NULL;
    elf_file *f = calloc(1, sizeof *f);
    snprintf(why, why_bytes, "it cannot be read");
    if (f == NULL || open_module(f, path, build_id, why, why_bytes)) return f;
    close_file(f);
    return NULL;
}

// ---- units by address ----
//
// gcc lists the addresses of all units (.debug_aranges), clang does not.

static bool add_range(elf_file *f, Dwarf_Addr begin, Dwarf_Addr end, Dwarf_Off unit) {
    if (begin >= end) return true;
    if (f->n_ranges == f->cap_ranges) {
        const size_t cap = f->cap_ranges * 2 + 64;
        range *more = realloc(f->ranges, cap * sizeof *more);
        if (more == NULL) return false;
        f->ranges = more;
        f->cap_ranges = cap;
    }
    f->ranges[f->n_ranges++] = (range){begin, end, unit};
    return true;
}

static int by_begin(const void *a, const void *b) {
    const range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void make_ranges(elf_file *f, Dwarf *dwarf) {
    Dwarf_Off at = 0, next;
    size_t head_bytes;
    f->has_ranges = true;
    for (; dwarf_nextcu(dwarf, at, &next, &head_bytes, NULL, NULL, NULL) == 0; at = next) {
        Dwarf_Die unit;
        Dwarf_Addr base, begin, end;
        if (dwarf_offdie(dwarf, at + head_bytes, &unit) == NULL) continue;
        for (ptrdiff_t i = 0; (i = dwarf_ranges(&unit, i, &base, &begin, &end)) > 0;)
            if (!add_range(f, begin, end, at + head_bytes)) return;
    }
    if (f->n_ranges > 1) qsort(f->ranges, f->n_ranges, sizeof *f->ranges, by_begin);
}

/// The unit at `address`, as the debug information has it. False: none is known.
static bool find_unit(elf_file *f, Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *unit) {
    if (dwarf_addrdie(dwarf, address, unit) != NULL) return true;
    if (!f->has_ranges) make_ranges(f, dwarf);
    size_t low = 0, high = f->n_ranges; // the first that begins behind it
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (f->ranges[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < f->ranges[low - 1].end && dwarf_offdie(dwarf, f->ranges[low - 1].unit, unit) != NULL;
}

// ---- names ----

typedef struct put_call {
    void (*put)(void *ctx, const tide_symbol *symbol);
    void *ctx;
} put_call;

static void put_name(const put_call *p, const char *name, const char *file, int line) {
    int status = -1;
    char *readable = strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
    const tide_symbol found = {
        .function = status == 0 && readable != NULL ? readable : name, .file = file, .line = line};
    p->put(p->ctx, &found);
    free(readable);
}

/// The name that the linker knows a function by, else that of the source; NULL: it has none.
static const char *name_of(Dwarf_Die *die) {
    static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        Dwarf_Attribute attribute;
        if (dwarf_attr_integrate(die, names[i], &attribute) == NULL) continue;
        const char *name = dwarf_formstring(&attribute);
        if (name != NULL) return name;
    }
    return NULL;
}

/// In place: a path from the root without ".", ".." and empty parts, so that one file has one name. Folders that are
/// links are not followed: the machine that built the program may have been another one.
static void remove_dots(char *path) {
    char *out = path;
    for (const char *at = path; *at != '\0';) {
        while (*at == '/') at++;
        const size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.') {
            while (out > path && *--out != '/') {
            }
        } else if (n > 0 && !(n == 1 && at[0] == '.')) {
            *out++ = '/';
            memmove(out, at, n);
            out += n;
        }
        at += n;
    }
    if (out == path) *out++ = '/';
    *out = '\0';
}

/// From the root, if the debug information says so. `room` holds what it is put together in.
static const char *whole_path(const char *path, Dwarf_Die *unit, char *room, size_t bytes) {
    Dwarf_Attribute attribute;
    if (path == NULL || path[0] == '<') return path;
    const char *folder = path[0] == '/' ? "" : dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    if (folder == NULL) return path;
    const int n = snprintf(room, bytes, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", path);
    if (n <= 0 || (size_t)n >= bytes) return path;
    if (room[0] == '/') remove_dots(room);
    return room;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

enum { MAX_PATH = 4096, MAX_LINE = 1 << 30 };

/// Where the code of an inlined function was called.
static int caller_line(Dwarf_Die *inlined, Dwarf_Die *unit, const char **file, char room[MAX_PATH]) {
    Dwarf_Files *files;
    size_t n;
    const Dwarf_Word number = number_of(inlined, DW_AT_call_file), line = number_of(inlined, DW_AT_call_line);
    *file = NULL;
    if (dwarf_getsrcfiles(unit, &files, &n) == 0 && number < n)
        *file = whole_path(dwarf_filesrc(files, number, NULL, NULL), unit, room, MAX_PATH);
    return line < MAX_LINE ? (int)line : 0;
}

/// The functions around an address. False: the debug information does not have it.
static bool find_in_dwarf(elf_file *f, uint64_t address, const put_call *p) {
    Dwarf_Addr bias;
    Dwarf *dwarf = dwfl_module_getdwarf(f->module, &bias);
    Dwarf_Die unit, *inner = NULL, *outwards = NULL;
    const Dwarf_Addr at = address + f->bias - bias;
    if (dwarf == NULL || !find_unit(f, dwarf, at, &unit)) return false;
    char room[MAX_PATH];
    int line = 0;
    Dwarf_Line *source = dwarf_getsrc_die(&unit, at);
    const char *file = source != NULL ? whole_path(dwarf_linesrc(source, NULL, NULL), &unit, room, sizeof room) : NULL;
    if (source != NULL) dwarf_lineno(source, &line);
    const int n_inner = dwarf_getscopes(&unit, at, &inner);
    const int n = n_inner > 0 ? dwarf_getscopes_die(&inner[0], &outwards) : 0;
    bool any = false;
    for (int i = 0; i < n; i++) {
        const int tag = dwarf_tag(&outwards[i]);
        const char *name = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ? name_of(&outwards[i]) : NULL;
        if (name == NULL) continue;
        put_name(p, name, line > 0 ? file : NULL, line);
        any = true;
        if (tag == DW_TAG_subprogram) break;
        line = caller_line(&outwards[i], &unit, &file, room);
    }
    free(inner);
    free(outwards);
    return any;
}

// ---- symbols by address ----

/// How good a name is among those of one address: what others may call, as few underscores before it as can be.
static int rank_of(const char *name, const GElf_Sym *s) {
    const int binding = GELF_ST_BIND(s->st_info), n = (int)strspn(name, "_");
    return (binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 8 : 16) + (n < 7 ? n : 7);
}

static bool add_symbol(elf_file *f, const char *name, const GElf_Sym *s, GElf_Addr at) {
    const int type = GELF_ST_TYPE(s->st_info);
    if (name == NULL || name[0] == '\0' || s->st_size == 0 || s->st_shndx == SHN_UNDEF ||
        (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
        return true;
    if (f->n_symbols == f->cap_symbols) {
        const size_t cap = f->cap_symbols * 2 + 256;
        symbol *more = realloc(f->symbols, cap * sizeof *more);
        if (more == NULL) return false;
        f->symbols = more;
        f->cap_symbols = cap;
    }
    f->symbols[f->n_symbols++] = (symbol){.begin = at, .bytes = s->st_size, .name = name, .rank = rank_of(name, s)};
    return true;
}

/// The better name behind the other ones of its address: it is found first.
static int by_place(const void *a, const void *b) {
    const symbol *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->rank < y->rank) - (x->rank > y->rank);
}

static void make_symbols(elf_file *f) {
    const int n = dwfl_module_getsymtab(f->module);
    f->has_symbols = true;
    for (int i = 1; i < n; i++) {
        GElf_Sym s;
        GElf_Addr at;
        const char *name = dwfl_module_getsym_info(f->module, i, &s, &at, NULL, NULL, NULL);
        if (!add_symbol(f, name, &s, at)) return;
    }
    if (f->n_symbols > 1) qsort(f->symbols, f->n_symbols, sizeof *f->symbols, by_place);
}

/// A symbol that has the address in its bytes.
static void find_in_symbols(elf_file *f, uint64_t address, const put_call *p) {
    enum { LOOK_BACK = 16 }; // symbols seldom lie in one another
    const uint64_t at = address + f->bias;
    if (!f->has_symbols) make_symbols(f);
    size_t low = 0, high = f->n_symbols; // the first that begins behind it
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (f->symbols[middle].begin <= at)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--) {
        const symbol *s = &f->symbols[i - 1];
        if (at - s->begin >= s->bytes) continue;
        put_name(p, s->name, NULL, 0);
        return;
    }
}

static void find(void *file, uint64_t address, void (*put)(void *ctx, const tide_symbol *symbol), void *ctx) {
    const put_call p = {put, ctx};
    if (!find_in_dwarf(file, address, &p)) find_in_symbols(file, address, &p);
}

EXPORT const tide_symbols_plugin *tidemark_symbols_plugin(void) {
    static const tide_symbols_plugin plugin = {TIDE_SYMBOLS_PLUGIN_VERSION, open_file, find, close_file};
    return &plugin;
}
