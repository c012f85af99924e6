// SPDX-License-Identifier: MIT
//
// Colours of roles: contrast on dark and light grounds (WCAG 2), apart for colour-blind eyes, and none where none may
// be.
#include "tests/tide_test.h"

#include <math.h>

#include "tui/draw/colours.h"

typedef struct rgb {
    double c[3]; ///< linear light, 0 to 1
} rgb;

static rgb linear(int32_t colour) {
    rgb out;
    for (int i = 0; i < 3; i++) {
        const double v = (double)(colour >> (16 - 8 * i) & 0xFF) / 255.0;
        out.c[i] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    return out;
}

static double luminance(rgb v) { return 0.2126 * v.c[0] + 0.7152 * v.c[1] + 0.0722 * v.c[2]; }

static double contrast(int32_t a, int32_t b) {
    const double la = luminance(linear(a)), lb = luminance(linear(b));
    return la > lb ? (la + 0.05) / (lb + 0.05) : (lb + 0.05) / (la + 0.05);
}

/// A colour of xterm's palette of 256, from number 16 on.
static int32_t rgb_of(tide_tui_colour_tier tier, int32_t colour) {
    static const int levels[] = {0, 95, 135, 175, 215, 255};
    if (tier == TIDE_TUI_COLOUR_TRUE) return colour;
    assert_in_range(colour, 16, 255);
    if (colour >= 232) return (8 + 10 * (colour - 232)) * 0x010101;
    const int i = colour - 16;
    return levels[i / 36] << 16 | levels[i / 6 % 6] << 8 | levels[i % 6];
}

static const tide_tui_colour_tier rich[] = {TIDE_TUI_COLOUR_TRUE, TIDE_TUI_COLOUR_256};

static int32_t colour_on(tide_tui_colour_tier tier, tide_tui_ground ground, int role) {
    const tide_tui_look look = tide_tui_look_of(tier, ground, (tide_tui_role)role);
    return look.colour == TIDE_TUI_OWN_COLOUR ? TIDE_TUI_OWN_COLOUR : rgb_of(tier, look.colour);
}

static void every_role_holds_on_its_ground(void **state) {
    (void)state;
    static const struct {
        tide_tui_ground ground;
        int32_t behind[3];
        double least;
    } cases[] = {{TIDE_TUI_GROUND_DARK, {0x000000, 0x1E1E1E, 0x002B36}, 3.0},
                 {TIDE_TUI_GROUND_LIGHT, {0xFFFFFF, 0xF5F5F5, 0xFDF6E3}, 3.0},
                 {TIDE_TUI_GROUND_UNKNOWN, {0x000000, 0xFFFFFF, 0xFFFFFF}, 2.8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t t = 0; t < 2; t++) {
            for (int role = 0; role < TIDE_TUI_ROLE_PLACE; role++) {
                if (role == TIDE_TUI_ROLE_INK) continue; // stands on colours of its own
                const int32_t colour = colour_on(rich[t], cases[i].ground, role);
                for (int k = 0; colour != TIDE_TUI_OWN_COLOUR && k < 3; k++) {
                    const double c = contrast(colour, cases[i].behind[k]);
                    if (c < cases[i].least)
                        fail_msg("role %d: %06x on %06x has contrast %.2f", role, (unsigned)colour,
                                 (unsigned)cases[i].behind[k], c);
                }
            }
        }
    }
}

/// What is read as text has the contrast of text.
static void words_can_be_read(void **state) {
    (void)state;
    static const int words[] = {TIDE_TUI_ROLE_DIM,      TIDE_TUI_ROLE_KEY,   TIDE_TUI_ROLE_PEAK,
                                TIDE_TUI_ROLE_BOUND,    TIDE_TUI_ROLE_PLAN,  TIDE_TUI_ROLE_GOOD,
                                TIDE_TUI_ROLE_CAPACITY, TIDE_TUI_ROLE_OTHER, TIDE_TUI_ROLE_ERROR};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        for (size_t t = 0; t < 2; t++) {
            const int32_t dark = colour_on(rich[t], TIDE_TUI_GROUND_DARK, words[i]);
            const int32_t light = colour_on(rich[t], TIDE_TUI_GROUND_LIGHT, words[i]);
            if (contrast(dark, 0x000000) < 4.5 || contrast(light, 0xFFFFFF) < 4.5)
                fail_msg("role %d: %06x on black %.2f, %06x on white %.2f", words[i], (unsigned)dark, contrast(dark, 0),
                         (unsigned)light, contrast(light, 0xFFFFFF));
            const int32_t shaded = tide_tui_ground_colour(rich[t], TIDE_TUI_GROUND_DARK, TIDE_TUI_ROLE_RANGE);
            assert_true(contrast(dark, rgb_of(rich[t], shaded)) >= 3.0);
        }
    }
}

/// Linear light as a dichromat sees it (Machado, Oliveira and Fernandes 2009, severity 1).
static rgb seen(rgb v, int form) {
    static const double forms[4][3][3] = {
        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
        {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
        {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
        {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};
    rgb out;
    for (int i = 0; i < 3; i++) {
        out.c[i] = forms[form][i][0] * v.c[0] + forms[form][i][1] * v.c[1] + forms[form][i][2] * v.c[2];
        if (out.c[i] < 0) out.c[i] = 0;
        if (out.c[i] > 1) out.c[i] = 1;
    }
    return out;
}

static double curve(double t) { return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116.0; }

/// Distance in CIE L*a*b*.
static double difference(rgb a, rgb b) {
    double lab[2][3];
    const rgb both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const double *c = both[i].c;
        const double x = curve((0.4124 * c[0] + 0.3576 * c[1] + 0.1805 * c[2]) / 0.95047);
        const double y = curve(0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]);
        const double z = curve((0.0193 * c[0] + 0.1192 * c[1] + 0.9505 * c[2]) / 1.08883);
        lab[i][0] = 116 * y - 16;
        lab[i][1] = 500 * (x - y);
        lab[i][2] = 200 * (y - z);
    }
    return sqrt(pow(lab[0][0] - lab[1][0], 2) + pow(lab[0][1] - lab[1][1], 2) + pow(lab[0][2] - lab[1][2], 2));
}

static void bars_stay_apart_for_colour_blind_eyes(void **state) {
    (void)state;
    static const tide_tui_ground grounds[] = {TIDE_TUI_GROUND_UNKNOWN, TIDE_TUI_GROUND_DARK, TIDE_TUI_GROUND_LIGHT};
    for (size_t g = 0; g < 3; g++) {
        for (int form = 0; form < 4; form++) {
            for (int a = 0; a < TIDE_N_ITEM_FILLS; a++) {
                for (int b = 0; b < a; b++) {
                    const int32_t ca = colour_on(TIDE_TUI_COLOUR_TRUE, grounds[g], TIDE_TUI_ROLE_BAR + a);
                    const int32_t cb = colour_on(TIDE_TUI_COLOUR_TRUE, grounds[g], TIDE_TUI_ROLE_BAR + b);
                    const double d = difference(seen(linear(ca), form), seen(linear(cb), form));
                    if (d < 8) fail_msg("bars %d and %d (ground %zu) are %.1f apart in form %d", a, b, g, d, form);
                }
            }
        }
    }
}

static void shades_of_the_map_differ_in_every_tier(void **state) {
    (void)state;
    for (int tier = TIDE_TUI_COLOUR_TRUE; tier <= TIDE_TUI_COLOUR_8; tier++) {
        for (int ground = 0; ground <= TIDE_TUI_GROUND_LIGHT; ground++) {
            for (int fill = 0; fill < TIDE_N_ITEM_FILLS; fill++) {
                for (int a = 0; a < TIDE_TUI_N_SHADES; a++) {
                    for (int b = 0; b < a; b++) {
                        const int role = TIDE_TUI_ROLE_PLACE + fill * TIDE_TUI_N_SHADES;
                        const int32_t ca = tide_tui_look_of((tide_tui_colour_tier)tier, (tide_tui_ground)ground,
                                                            (tide_tui_role)(role + a))
                                               .colour;
                        const int32_t cb = tide_tui_look_of((tide_tui_colour_tier)tier, (tide_tui_ground)ground,
                                                            (tide_tui_role)(role + b))
                                               .colour;
                        assert_int_not_equal(ca, cb);
                    }
                }
            }
        }
    }
}

static void names_can_be_read_on_the_map(void **state) {
    (void)state;
    for (int ground = 0; ground <= TIDE_TUI_GROUND_LIGHT; ground++) {
        for (size_t t = 0; t < 2; t++) {
            const tide_tui_ground on = (tide_tui_ground)ground;
            const int32_t ink = colour_on(rich[t], on, TIDE_TUI_ROLE_INK);
            for (int role = TIDE_TUI_ROLE_PLACE; role < TIDE_TUI_N_ROLES; role++) {
                const int32_t place = rgb_of(rich[t], tide_tui_ground_colour(rich[t], on, (tide_tui_role)role));
                if (contrast(ink, place) < 2.9)
                    fail_msg("ground %d: ink %06x on %06x has contrast %.2f", ground, (unsigned)ink, (unsigned)place,
                             contrast(ink, place));
            }
        }
    }
}

static void palettes_are_not_left(void **state) {
    (void)state;
    static const struct {
        tide_tui_colour_tier tier;
        int32_t n;
    } tiers[] = {{TIDE_TUI_COLOUR_TRUE, 0x1000000},
                 {TIDE_TUI_COLOUR_256, 256},
                 {TIDE_TUI_COLOUR_16, 16},
                 {TIDE_TUI_COLOUR_8, 8}};
    for (size_t t = 0; t < 4; t++) {
        for (int ground = 0; ground <= TIDE_TUI_GROUND_LIGHT; ground++) {
            for (int role = 0; role < TIDE_TUI_N_ROLES; role++) {
                const tide_tui_ground on = (tide_tui_ground)ground;
                const int32_t c = tide_tui_look_of(tiers[t].tier, on, (tide_tui_role)role).colour;
                const int32_t behind = tide_tui_ground_colour(tiers[t].tier, on, (tide_tui_role)role);
                assert_true(c >= TIDE_TUI_OWN_COLOUR && c < tiers[t].n);
                assert_true(behind >= TIDE_TUI_OWN_COLOUR && behind < tiers[t].n);
            }
        }
    }
}

static void mono_has_attributes_alone(void **state) {
    (void)state;
    for (int role = 0; role < TIDE_TUI_N_ROLES; role++) {
        for (int ground = 0; ground <= TIDE_TUI_GROUND_LIGHT; ground++) {
            const tide_tui_ground on = (tide_tui_ground)ground;
            assert_int_equal(tide_tui_look_of(TIDE_TUI_COLOUR_MONO, on, (tide_tui_role)role).colour,
                             TIDE_TUI_OWN_COLOUR);
            assert_int_equal(tide_tui_ground_colour(TIDE_TUI_COLOUR_MONO, on, (tide_tui_role)role),
                             TIDE_TUI_OWN_COLOUR);
        }
    }
    const tide_tui_look peak = tide_tui_look_of(TIDE_TUI_COLOUR_MONO, TIDE_TUI_GROUND_DARK, TIDE_TUI_ROLE_PEAK);
    assert_int_equal(peak.attrs, TIDE_TUI_ATTR_BOLD);
}

static void the_ground_is_read_from_the_environment(void **state) {
    (void)state;
    static const struct {
        const char *value;
        tide_tui_ground want;
    } cases[] = {{NULL, TIDE_TUI_GROUND_UNKNOWN},         {"", TIDE_TUI_GROUND_UNKNOWN},
                 {"15", TIDE_TUI_GROUND_UNKNOWN},         {"15;0", TIDE_TUI_GROUND_DARK},
                 {"0;15", TIDE_TUI_GROUND_LIGHT},         {"0;7", TIDE_TUI_GROUND_LIGHT},
                 {"12;8", TIDE_TUI_GROUND_DARK},          {"0;default;15", TIDE_TUI_GROUND_LIGHT},
                 {"15;default", TIDE_TUI_GROUND_UNKNOWN}, {"0;15x", TIDE_TUI_GROUND_UNKNOWN},
                 {"0;99", TIDE_TUI_GROUND_UNKNOWN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tide_tui_ground_of(cases[i].value), cases[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_role_holds_on_its_ground),
        tide_unit_test(words_can_be_read),
        tide_unit_test(bars_stay_apart_for_colour_blind_eyes),
        tide_unit_test(shades_of_the_map_differ_in_every_tier),
        tide_unit_test(names_can_be_read_on_the_map),
        tide_unit_test(palettes_are_not_left),
        tide_unit_test(mono_has_attributes_alone),
        tide_unit_test(the_ground_is_read_from_the_environment),
    };
    return cmocka_run_group_tests_name("tui_colours", tests, NULL, NULL);
}
