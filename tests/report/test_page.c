/*
 * Pages: wrapping, cutting, double-width characters, escapes, colour.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/page.h"

static void assert_page(struct page *page, const char *expected)
{
    assert_string_equal(page->out.text.len == 0 ? "" : page->out.text.bytes, expected);
    nd_page_done(page);
}

static void words_wrap_at_the_indent(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 20, true, false);
    page.indent = 4;
    nd_page_put(&page, INK_PLAIN, "ab");
    nd_page_tab(&page, 4);
    nd_page_flow(&page, INK_PLAIN, "one two three four five six");
    nd_page_end(&page);
    assert_page(&page, "ab  one two three\n    four five six\n");
}

static void punctuation_stays_with_the_word_before_it(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 20, true, false);
    nd_page_flow(&page, INK_PLAIN, "0123456789 12345678");
    nd_page_flow(&page, INK_PLAIN, "; next");
    nd_page_end(&page);
    assert_page(&page, "0123456789 12345678;\nnext\n");
}

static void chinese_breaks_between_characters_and_counts_two_columns(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_ZH, 20, true, false);
    assert_int_equal(nd_page_columns(&page, "中文 abc"), 8);
    /* Ten characters would fill 20 columns; the last column is kept for punctuation. */
    nd_page_flow(&page, INK_PLAIN, "一二三四五六七八九十一二");
    nd_page_end(&page);
    assert_page(&page, "一二三四五六七八九\n十一二\n");
}

static void combining_marks_take_no_column(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 20, true, false);
    assert_int_equal(nd_page_columns(&page, "e\xcc\x81"), 1); /* e, U+0301 */
    nd_page_done(&page);
}

static void a_name_that_does_not_fit_is_cut_in_the_middle(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 80, true, false);
    nd_page_cut(&page, INK_PLAIN, "layers.3.self_attn.q_proj", 11);
    nd_page_put(&page, INK_PLAIN, "|");
    nd_page_cut(&page, INK_PLAIN, "short", 11);
    assert_page(&page, "laye…q_proj|short");
    nd_page_init(&page, LANGUAGE_EN, 80, false, false);
    nd_page_cut(&page, INK_PLAIN, "layers.3.self_attn.q_proj", 11);
    assert_page(&page, "lay..._proj");
}

static void a_word_longer_than_a_line_is_cut_too(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 20, true, false);
    nd_page_flow(&page, INK_PLAIN, "abcdefghijklmnopqrstuvwxyz");
    nd_page_end(&page);
    assert_page(&page, "abcdefg…opqrstuvwxyz\n");
}

static void an_item_goes_to_the_next_line_whole(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 20, true, false);
    page.indent = 2;
    nd_page_tab(&page, 2);
    nd_page_item(&page, INK_PLAIN, "drift 1");
    nd_page_item(&page, INK_PLAIN, "max 22");
    nd_page_item(&page, INK_PLAIN, "cosine 0.9");
    nd_page_end(&page);
    assert_page(&page, "  drift 1   max 22\n  cosine 0.9\n");
}

static void control_characters_and_broken_utf8_are_shown_escaped(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 80, true, false);
    nd_page_put(&page, INK_PLAIN, "a\x1b[2J\xff\xc2\x9b" "b\n");
    assert_page(&page, "a\\x1b[2J\\xff\\xc2\\x9bb\\x0a");
}

static void ascii_replaces_signs_and_escapes_the_rest(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_ZH, 80, false, false);
    nd_page_put(&page, INK_PLAIN, "≤1e-6 × 层");
    assert_page(&page, "<=1e-6 x \\xe5\\xb1\\x82");
    assert_string_equal(nd_page_words(&page, "report.drift"), "drift");
}

static void colour_spans_words_and_ends_with_the_line(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 80, true, true);
    nd_page_flow(&page, INK_BAD, "two words");
    nd_page_flow(&page, INK_PLAIN, " plain");
    nd_page_put(&page, INK_BOLD, "!");
    nd_page_end(&page);
    assert_page(&page, "\x1b[1;31mtwo words\x1b[0m plain\x1b[1m!\x1b[0m\n");
}

static void numbers_stand_at_the_right_of_their_column(void **state)
{
    struct page page;

    (void)state;
    nd_page_init(&page, LANGUAGE_EN, 80, true, false);
    nd_page_right(&page, INK_PLAIN, "7", 4);
    nd_page_right(&page, INK_PLAIN, "1.5", 10);
    nd_page_right(&page, INK_PLAIN, "too long for it", 12);
    nd_page_end(&page);
    assert_page(&page, "   7   1.5 too long for it\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_wrap_at_the_indent),
        cmocka_unit_test(punctuation_stays_with_the_word_before_it),
        cmocka_unit_test(chinese_breaks_between_characters_and_counts_two_columns),
        cmocka_unit_test(combining_marks_take_no_column),
        cmocka_unit_test(a_name_that_does_not_fit_is_cut_in_the_middle),
        cmocka_unit_test(a_word_longer_than_a_line_is_cut_too),
        cmocka_unit_test(an_item_goes_to_the_next_line_whole),
        cmocka_unit_test(control_characters_and_broken_utf8_are_shown_escaped),
        cmocka_unit_test(ascii_replaces_signs_and_escapes_the_rest),
        cmocka_unit_test(colour_spans_words_and_ends_with_the_line),
        cmocka_unit_test(numbers_stand_at_the_right_of_their_column),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
