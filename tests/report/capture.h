/*
 * A report as one text.  For cmocka tests, which include it after cmocka.h.
 */
#ifndef ND_TESTS_REPORT_CAPTURE_H
#define ND_TESTS_REPORT_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>

/* Everything in the stream from its beginning, to be freed; closes the stream. */
static char *capture_end(FILE *stream)
{
    const long size = ftell(stream);
    char *text = calloc((size_t)size + 1, 1);

    assert_non_null(text);
    rewind(stream);
    assert_int_equal(fread(text, 1, (size_t)size, stream), size);
    fclose(stream);
    return text;
}

static FILE *capture_begin(void)
{
    FILE *stream = tmpfile();

    assert_non_null(stream);
    return stream;
}

#endif
