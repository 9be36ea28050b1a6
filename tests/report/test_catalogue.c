/*
 * The catalogue: both languages say the same, ids are unique, placeholders are filled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "normdiff/report.h"
#include "text/catalogue.h"

/* Whether the key of the placeholder at `open` also stands in `words`. */
static bool key_stands_in(const char *open, const char *words)
{
    const size_t len = strcspn(open + 1, "|}");

    for (const char *at = strchr(words, '{'); at != NULL; at = strchr(at + 1, '{'))
        if (strncmp(at + 1, open + 1, len) == 0 && strchr("|}", at[1 + len]) != NULL)
            return true;
    return false;
}

static void assert_keys_within(const char *id, const char *words, const char *other)
{
    for (const char *open = strchr(words, '{'); open != NULL;
         open = strchr(open + 1, '{')) {
        if (strchr(open, '}') == NULL)
            fail_msg("%s: a placeholder without its end", id);
        if (!key_stands_in(open, other))
            fail_msg("%s: %.20s stands in one language only", id, open);
    }
}

static void both_languages_have_words_with_the_same_placeholders(void **state)
{
    (void)state;
    for (size_t i = 0; nd_catalogue_id(i) != NULL; i++) {
        const char *id = nd_catalogue_id(i);
        const char *english = nd_catalogue_words(id, LANGUAGE_EN);
        const char *chinese = nd_catalogue_words(id, LANGUAGE_ZH);
        if ((english[0] == '\0') != (chinese[0] == '\0'))
            fail_msg("%s: one language has no words", id);
        assert_keys_within(id, english, chinese);
        assert_keys_within(id, chinese, english);
    }
}

static void every_id_stands_once(void **state)
{
    (void)state;
    for (size_t i = 0; nd_catalogue_id(i) != NULL; i++) {
        if (strpbrk(nd_catalogue_id(i), " \"") != NULL)
            fail_msg("%s: not made of words and dots", nd_catalogue_id(i));
        for (size_t k = 0; k < i; k++)
            if (strcmp(nd_catalogue_id(i), nd_catalogue_id(k)) == 0)
                fail_msg("%s stands twice", nd_catalogue_id(i));
    }
}

static void english_is_ascii_but_for_the_signs_that_a_page_can_replace(void **state)
{
    static const char *const signs[] = {"…", "≤", "≥", "×", "−", "–", "→",
                                        "·", "±", "√", "²", "ε", "≈", "σ"};

    (void)state;
    for (size_t i = 0; nd_catalogue_id(i) != NULL; i++)
        for (const char *at = nd_catalogue_words(nd_catalogue_id(i), LANGUAGE_EN);
             *at != '\0';) {
            size_t len = (unsigned char)*at < 0x80 ? 1 : 0;
            for (size_t k = 0; k < sizeof signs / sizeof signs[0] && len == 0; k++)
                len = strncmp(at, signs[k], strlen(signs[k])) == 0 ? strlen(signs[k]) : 0;
            if (len == 0)
                fail_msg("%s: %.8s has no ASCII form", nd_catalogue_id(i), at);
            at += len;
        }
}

static void phrases_are_filled_and_choose_singular_and_plural(void **state)
{
    struct nd_param params[] = {
        {.key = "count", .number = 1   },
        {.key = "bound", .text = "1e-1"}
    };
    struct nd_phrase phrase = {"reason.drift", params, 2};
    char text[200];

    (void)state;
    assert_string_equal(nd_phrase_text(&phrase, NULL, text, sizeof text),
                        "1 layer reaches 1e-1");
    params[0].number = 15;
    assert_string_equal(nd_phrase_text(&phrase, "en", text, sizeof text),
                        "15 layers reach 1e-1");
    assert_string_equal(nd_phrase_text(&phrase, "zh_CN", text, sizeof text),
                        "15 层达到 1e-1");
}

static void a_phrase_that_is_unknown_or_too_long_still_gives_text(void **state)
{
    const struct nd_param params[] = {
        {.key = "name", .text = "a\x1b[2Jb"}
    };
    const struct nd_phrase unknown = {"no such id: {name} {other}", params, 1};
    const struct nd_phrase chinese = {"report.partial", NULL, 0};
    const struct nd_phrase none = {0};
    char text[200], small[8];

    (void)state;
    assert_string_equal(nd_phrase_text(&unknown, NULL, text, sizeof text),
                        "no such id: a\\x1b[2Jb {other}");
    /* Two characters of three bytes each fit into seven. */
    assert_string_equal(nd_phrase_text(&chinese, "zh", small, sizeof small), "转储");
    assert_string_equal(nd_phrase_text(&none, NULL, text, sizeof text), "");
}

static void numbers_are_exact_where_short_and_rounded_where_long(void **state)
{
    static const struct {
        double value;
        const char *words;
    } rows[] = {
        {1e-5,       "1e-05"        },
        {1.00023e-4, "1.0002e-04"   },
        {0.03125,    "0.03125"      },
        {128,        "128"          },
        {1234567,    "1234567"      },
        {0.0312345,  "0.03123"      },
        {2.718281,   "2.718"        },
        {31415.9265, "31416"        },
        {-0.5,       "-0.5"         },
        {0.0,        "0"            },
        {1.23456e12, "1234560000000"}
    };
    char buf[32];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(nd_number_words(rows[i].value, buf), rows[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_languages_have_words_with_the_same_placeholders),
        cmocka_unit_test(every_id_stands_once),
        cmocka_unit_test(english_is_ascii_but_for_the_signs_that_a_page_can_replace),
        cmocka_unit_test(phrases_are_filled_and_choose_singular_and_plural),
        cmocka_unit_test(a_phrase_that_is_unknown_or_too_long_still_gives_text),
        cmocka_unit_test(numbers_are_exact_where_short_and_rounded_where_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
