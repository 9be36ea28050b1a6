/*
 * Figures as people read them: two or three significant digits, units, bounds.  Each
 * writes into buf, which holds FIGURE_SIZE bytes, and returns it.
 */
#ifndef ND_REPORT_FIGURES_H
#define ND_REPORT_FIGURES_H

#include <stdint.h>

#include "normdiff/result.h"

enum { FIGURE_SIZE = 512 };

char *nd_figure_drift(double drift, char *buf);   /* "4.1e-01", "0", "inf", "-" */
char *nd_figure_value(double value, char *buf);   /* "1.31", "9.7e-02" */
char *nd_figure_element(double value, char *buf); /* six digits: values to tell apart */
char *nd_figure_cosine(double cosine, char *buf); /* "0.99971", "1 - 3.1e-07" */
char *nd_figure_bound(double bound, char *buf);   /* "1e-1" */
char *nd_figure_bytes(uint64_t bytes, char *buf); /* "1.2 GB", decimal units */
char *nd_figure_share(double share, char *buf);   /* "99.9 %" */
char *nd_figure_count(uint64_t count, char *buf);
char *nd_figure_index(const uint64_t *index, uint32_t len, char *buf); /* "[2, 17, 340]" */
char *nd_figure_shape(const struct nd_shape *shape, char *buf);

#endif
