/*
 * Reports: a result (or a listing, or an error) written to a stream in one of the formats
 * of nd_report_name().
 */
#ifndef NORMDIFF_REPORT_H
#define NORMDIFF_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "normdiff/result.h"
#include "normdiff/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct nd_report_options {
    bool        all;     /* every layer, not only what matters */
    bool        verbose; /* matching, notes, ignored objects */
    bool        color;
    bool        utf8;    /* the terminal shows UTF-8; else ASCII only */
    unsigned    width;   /* columns; 0: 80 */
    const char *lang;    /* "en" (also NULL) or "zh" */
};

/* The i-th report's --format word and its title for people; NULL past the last. */
const char *nd_report_name(size_t i);
const char *nd_report_title(size_t i);
/* Text and the like, which follow the reader's language; machine formats are English
 * unless a language is asked for. */
bool nd_report_for_people(const char *name);

/* NULL options: plain English, 80 columns.  ND_ERR_USAGE for an unknown name. */
enum nd_status nd_report_write(const struct nd_result *result, const char *name,
                               const struct nd_report_options *options, FILE *stream,
                               struct nd_error *err);
enum nd_status nd_report_listing(const struct nd_listing *listing, const char *name,
                                 const struct nd_report_options *options, FILE *stream,
                                 struct nd_error *err);

/* The error document of a machine format; formats without one write nothing. */
enum nd_status nd_report_error(const struct nd_error *error, const char *name, FILE *stream);

/* One phrase in words; returns buf.  Cut to fit; escapes control characters. */
const char *nd_phrase_text(const struct nd_phrase *phrase, const char *lang, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
