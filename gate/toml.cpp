// SPDX-License-Identifier: MIT
//
// toml: a TOML document as a tree of config_node.h, with the line of each key. It is C++ because toml++ is;
// exceptions end here. toml++ limits how deep values nest, but not how many parts a dotted key has: each part
// becomes a table inside the one before, and they are freed recursively, so that a key of some hundred thousand
// parts would crash the program. So keys are counted before toml++ sees the text.
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <toml++/toml.h>

#include "core/base/host_alloc.h"
#include "gate/config_node.h"

namespace {

constexpr int max_dots = 16; // in one key

/// The index behind the string that begins at `i`.
size_t string_end(std::string_view text, size_t i) {
    const char quote = text[i];
    const bool is_long = i + 2 < text.size() && text[i + 1] == quote && text[i + 2] == quote;
    for (i += is_long ? 3 : 1; i < text.size(); i++) {
        if (text[i] == '\\' && quote == '"') {
            i++;
        } else if (!is_long) {
            if (text[i] == quote) return i + 1;
            if (text[i] == '\n') return text.size(); // no string: toml++ stops here too
        } else if (text.substr(i, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''")) {
            for (i += 3; i < text.size() && text[i] == quote;) i++; // two more may belong to the string
            return i;
        }
    }
    return text.size();
}

/// The line of the first key with too many parts, or 0. Outside of strings and comments, points occur only in keys,
/// numbers and dates, and a few characters end each of these.
int dotted_line(std::string_view text) {
    int line = 1, dots = 0;
    for (size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (c == '"' || c == '\'') {
            const size_t end = string_end(text, i);
            for (; i < end; i++) line += text[i] == '\n';
            continue;
        }
        if (c == '#') {
            const size_t end = text.find('\n', i);
            i = end == std::string_view::npos ? text.size() : end;
            continue;
        }
        if (std::strchr("\n=,[]{}", c) != nullptr) dots = 0;
        if (c == '\n') line++;
        if (c == '.' && ++dots > max_dots) return line;
        i++;
    }
    return 0;
}

struct reader {
    tide_gate_arena *arena;
    const char *name;
    tide_error *err;
};

tide_gate_node_type type_of(const toml::node &v) {
    switch (v.type()) {
    case toml::node_type::table:
        return TIDE_GATE_NODE_TABLE;
    case toml::node_type::array:
        return TIDE_GATE_NODE_LIST;
    case toml::node_type::string:
        return TIDE_GATE_NODE_TEXT;
    case toml::node_type::integer:
        return TIDE_GATE_NODE_INTEGER;
    case toml::node_type::floating_point:
        return TIDE_GATE_NODE_REAL;
    case toml::node_type::boolean:
        return TIDE_GATE_NODE_BOOL;
    default:
        return TIDE_GATE_NODE_DATE;
    }
}

tide_status convert_value(const reader &r, const toml::node &v, tide_gate_node *n) {
    if (const auto *text = v.as_string()) {
        n->text_len = (*text)->size();
        n->text = tide_gate_arena_text(r.arena, (*text)->data(), n->text_len);
        if (n->text == nullptr) return TIDE_NO_MEMORY(r.err, "to read '%s'", r.name);
    } else if (const auto *integer = v.as_integer()) {
        n->integer = **integer;
        n->real = static_cast<double>(**integer);
    } else if (const auto *real = v.as_floating_point()) {
        n->real = **real;
    } else if (const auto *truth = v.as_boolean()) {
        n->truth = **truth;
    }
    return TIDE_OK;
}

tide_status convert(const reader &r, const toml::node &v, tide_gate_node *n, int depth);

tide_status convert_member(const reader &r, const toml::node &v, tide_gate_node *parent, const char *key,
                           size_t key_len, toml::source_index line, int depth) {
    tide_gate_node *n = tide_gate_node_add(r.arena, parent, type_of(v), key, key_len, static_cast<int>(line));
    return n != nullptr ? convert(r, v, n, depth) : TIDE_NO_MEMORY(r.err, "to read '%s'", r.name);
}

/// Recursion is as deep as the document, and that is bounded here.
tide_status convert(const reader &r, const toml::node &v, tide_gate_node *n, int depth) {
    if (depth > TIDE_GATE_MAX_DEPTH) {
        const tide_status st =
            TIDE_FAIL(r.err, TIDE_ERR_BAD_INPUT, "cannot read '%s': tables and lists nested deeper than %d", r.name,
                      static_cast<int>(TIDE_GATE_MAX_DEPTH));
        tide_error_where(r.err, "%s:%d", r.name, n->line);
        return st;
    }
    if (const auto *table = v.as_table()) {
        for (auto &&[key, value] : *table) {
            const std::string_view text = key.str();
            TIDE_TRY(convert_member(r, value, n, text.data(), text.size(), key.source().begin.line, depth + 1));
        }
        return TIDE_OK;
    }
    if (const auto *list = v.as_array()) {
        for (auto &&value : *list)
            TIDE_TRY(convert_member(r, value, n, nullptr, 0, value.source().begin.line, depth + 1));
        return TIDE_OK;
    }
    return convert_value(r, v, n);
}

tide_status parse(const reader &r, std::string_view text, tide_gate_node **out) {
    const int line = dotted_line(text);
    if (line > 0) {
        const tide_status st =
            TIDE_FAIL(r.err, TIDE_ERR_BAD_INPUT, "cannot read '%s': a key of more than %d parts", r.name, max_dots);
        tide_error_where(r.err, "%s:%d", r.name, line);
        return st;
    }
    const toml::table doc = toml::parse(text);
    *out = tide_gate_node_add(r.arena, nullptr, TIDE_GATE_NODE_TABLE, nullptr, 0, 0);
    return *out != nullptr ? convert(r, doc, *out, 0) : TIDE_NO_MEMORY(r.err, "to read '%s'", r.name);
}

} // namespace

tide_status tide_gate_toml_parse(const char *text, size_t len, const char *name, tide_gate_arena *a,
                                 tide_gate_node **out, tide_error *err) {
    const reader r = {a, name, err};
    try {
        return parse(r, std::string_view(text, len), out);
    } catch (const toml::parse_error &e) {
        const std::string_view why = e.description();
        const tide_status st = TIDE_FAIL(err, TIDE_ERR_BAD_INPUT, "cannot read '%s': %.*s", name,
                                         static_cast<int>(why.size() < 300 ? why.size() : 300), why.data());
        tide_error_where(err, "%s:%u:%u", name, e.source().begin.line, e.source().begin.column);
        return st;
    } catch (const std::bad_alloc &) {
        return TIDE_NO_MEMORY(r.err, "to read '%s'", r.name);
    } catch (const std::exception &e) {
        return TIDE_FAIL(err, TIDE_ERR_UNKNOWN, "cannot read '%s': %s", name, e.what());
    } catch (...) {
        return TIDE_FAIL(err, TIDE_ERR_UNKNOWN, "cannot read '%s': toml++ failed without a word", name);
    }
}
