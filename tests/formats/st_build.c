/*
 * Safetensors files from a header's text.
 */
#include "formats/st_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bytes st_file(const char *header, size_t data_size)
{
    struct bytes bytes = {0};

    bytes_le(&bytes, strlen(header), 8);
    bytes_text(&bytes, header);
    for (size_t i = 0; i < data_size; i++) {
        const unsigned char byte = (unsigned char)i;
        bytes_put(&bytes, &byte, 1);
    }
    return bytes;
}

struct bytes nd_file(const char *record)
{
    struct bytes header = {0};

    bytes_text(&header, "{\"__metadata__\":{\"normdiff\":\"");
    for (const char *c = record; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            bytes_put(&header, "\\", 1);
        bytes_put(&header, c, 1);
    }
    bytes_text(&header,
               "\"},\"t0\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
               "\"t1\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[24,40]}}");
    bytes_put(&header, "", 1);
    struct bytes file = st_file((const char *)header.at, 40);
    bytes_free(&header);
    return file;
}

struct st_opened st_open(struct bytes bytes, const char *format)
{
    struct st_opened opened = {0};

    opened.status = open_exact(bytes.at, bytes.size, "folder/some.file", format,
                               &opened.dump, &opened.block, &opened.error);
    bytes_free(&bytes);
    return opened;
}

struct dump *st_open_sound(struct bytes bytes, const char *format, struct st_opened *opened)
{
    *opened = st_open(bytes, format);
    if (opened->status != ND_OK)
        fail_msg("%s: found %s, expected %s", opened->error.at, opened->error.found,
                 opened->error.expected);
    return opened->dump;
}

void st_close(struct st_opened *opened)
{
    if (opened->status == ND_OK)
        nd_dump_close(opened->dump);
    free(opened->block);
}

void assert_refused(struct bytes bytes, const char *format, enum nd_status status,
                    const char *at, const char *found)
{
    struct st_opened opened = st_open(bytes, format);

    if (opened.status != status || strstr(opened.error.at, at) == NULL ||
        strstr(opened.error.found, found) == NULL)
        fail_msg("status %d at '%s' found '%s'; wanted %d at '%s' found '%s'",
                 opened.status, opened.error.at, opened.error.found, status, at, found);
    assert_true(opened.error.expected[0] != '\0');
    assert_string_equal(opened.error.file, "folder/some.file");
    st_close(&opened);
}
