/*
 * JSON into a cJSON tree.  The text is checked first, from end to end, by the strict
 * scanner; so cJSON meets nothing but valid JSON of limited depth, and every complaint
 * carries a byte offset.
 */
#include "formats/json_in.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/json_scan.h"

enum {
    /* A cJSON item takes about 80 bytes and at least two of text; this many items
     * (1.3 GB) are far beyond any honest record and still short of exhausting a host. */
    JSON_MAX_ITEMS = 16 * 1000 * 1000
};

/* An upper bound of the items in a checked text: every item but the first follows one of
 * these (some of them stand in strings). */
static uint64_t json_item_bound(const unsigned char *bytes, uint64_t size)
{
    uint64_t count = 1;

    for (uint64_t i = 0; i < size; i++)
        count += bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{';
    return count;
}

/* Copies a checked text; outside strings N and I begin only the three bare tokens. */
static void json_copy_quoting_nan(const unsigned char *bytes, uint64_t size, char *dst)
{
    bool in_string = false;

    for (uint64_t i = 0; i < size; i++) {
        const unsigned char c = bytes[i];
        if (in_string && c == '\\') {
            *dst++ = (char)c;
            *dst++ = (char)bytes[++i];
        } else if (!in_string && c == 'N') {
            memcpy(dst, "\"nan\"", 5);
            dst += 5;
            i += strlen("NaN") - 1;
        } else if (!in_string && c == 'I') {
            memcpy(dst, "\"inf\"", 5);
            dst += 5;
            i += strlen("Infinity") - 1;
        } else if (!in_string && c == '-' && bytes[i + 1] == 'I') {
            memcpy(dst, "\"-inf\"", 6);
            dst += 6;
            i += strlen("-Infinity") - 1;
        } else {
            in_string = in_string != (c == '"');
            *dst++ = (char)c;
        }
    }
    *dst = '\0';
}

static pthread_mutex_t parser = PTHREAD_MUTEX_INITIALIZER;

enum nd_status nd_json_parse(const unsigned char *bytes, uint64_t size, bool allow_nan,
                             cJSON **ret_root, struct nd_error *err)
{
    struct cursor in = {.bytes = bytes, .size = size};
    uint64_t nan_count = 0;

    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        in.at = 3;
    const uint64_t first = in.at;
    ND_TRY(nd_json_scan_value(&in, allow_nan, &nan_count, err));
    const uint64_t end = in.at;
    nd_json_skip_blank(&in);
    if (in.at < in.size)
        return nd_json_unexpected(&in, "the end of the JSON text", err);
    if (end - first > JSON_MAX_ITEMS &&
        json_item_bound(bytes + first, end - first) > JSON_MAX_ITEMS)
        return nd_fail(err, ND_ERR_LIMIT, "at most 16000000 JSON values", "more of them");

    /* "NaN" grows by two bytes; the others shrink. */
    if (end - first > SIZE_MAX / 4)
        return nd_fail_memory(err);
    char *copy = malloc((size_t)(end - first) + 2 * (size_t)nan_count + 1);
    if (copy == NULL)
        return nd_fail_memory(err);
    if (nan_count > 0) {
        json_copy_quoting_nan(bytes + first, end - first, copy);
    } else {
        memcpy(copy, bytes + first, (size_t)(end - first));
        copy[end - first] = '\0';
    }
    /* cJSON keeps the place of its last error in one variable for all threads. */
    pthread_mutex_lock(&parser);
    cJSON *root = cJSON_ParseWithOpts(copy, NULL, true);
    pthread_mutex_unlock(&parser);
    free(copy);
    if (root == NULL)
        return nd_fail_memory(err); /* the text is valid, so nothing else can fail */
    *ret_root = root;
    return ND_OK;
}

bool nd_json_text(const cJSON *object, const char *key, const char **ret_text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsString(item))
        return false;
    *ret_text = item->valuestring;
    return true;
}

bool nd_json_number_of(const cJSON *item, double *ret_number)
{
    if (cJSON_IsNumber(item)) {
        *ret_number = item->valuedouble;
        return true;
    }
    if (!cJSON_IsString(item))
        return false;
    if (strcmp(item->valuestring, "nan") == 0)
        *ret_number = (double)NAN;
    else if (strcmp(item->valuestring, "inf") == 0)
        *ret_number = (double)INFINITY;
    else if (strcmp(item->valuestring, "-inf") == 0)
        *ret_number = -(double)INFINITY;
    else
        return false;
    return true;
}

bool nd_json_number(const cJSON *object, const char *key, double *ret_number)
{
    return nd_json_number_of(cJSON_GetObjectItemCaseSensitive(object, key), ret_number);
}

bool nd_json_bool(const cJSON *object, const char *key, bool *ret_value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!cJSON_IsBool(item))
        return false;
    *ret_value = cJSON_IsTrue(item) != 0;
    return true;
}

bool nd_json_size(const cJSON *item, uint64_t *ret_value)
{
    /* 2^53 itself is excluded: 2^53 + 1 reads as the same double. */
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
        item->valuedouble >= 9007199254740992.0 ||
        item->valuedouble != floor(item->valuedouble))
        return false;
    *ret_value = (uint64_t)item->valuedouble;
    return true;
}
