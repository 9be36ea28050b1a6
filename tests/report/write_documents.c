/*
 * Writes the JSON documents of the hand-built results into the working directory.
 */
#include <stdio.h>

#include "normdiff/normdiff.h"
#include "report/canned.h"

static FILE *open_file(const char *name)
{
    FILE *file = fopen(name, "w");

    if (file == NULL)
        perror(name);
    return file;
}

static int write_result(const char *name, const struct nd_result *result)
{
    FILE *file = open_file(name);

    return file == NULL || nd_report_write(result, "json", NULL, file, NULL) != ND_OK ||
           fclose(file) != 0;
}

static int write_listing(void)
{
    FILE *file = open_file("listing.json");

    return file == NULL ||
           nd_report_listing(nd_canned_listing(), "json", NULL, file, NULL) != ND_OK ||
           fclose(file) != 0;
}

static int write_error(void)
{
    const struct nd_error error = {.status = ND_ERR_MALFORMED,
                                   .file = "model.npy",
                                   .at = "byte 128",
                                   .found = "a header of 4096 bytes"};
    FILE *file = open_file("error.json");

    return file == NULL || nd_report_error(&error, "json", file) != ND_OK ||
           fclose(file) != 0;
}

int main(void)
{
    return write_result("drift.json", nd_canned_drift()) ||
           write_result("clean.json", nd_canned_clean()) ||
           write_result("incomplete.json", nd_canned_incomplete()) || write_listing() ||
           write_error();
}
