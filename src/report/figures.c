/*
 * Figures for people.
 */
#include "report/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

char *nd_figure_drift(double drift, char *buf)
{
    if (isnan(drift))
        return strcpy(buf, "-");
    if (!isfinite(drift) || drift == 0.0)
        return nd_number_text(drift, buf);
    snprintf(buf, FIGURE_SIZE, "%.1e", drift);
    return buf;
}

char *nd_figure_value(double value, char *buf)
{
    const double size = fabs(value);

    if (!isfinite(value) || value == 0.0)
        return nd_number_text(value, buf);
    if (size >= 999.5 && size < 1e6)
        snprintf(buf, FIGURE_SIZE, "%.0f", value);
    else if (size >= 0.01 && size < 999.5)
        snprintf(buf, FIGURE_SIZE, "%.3g", value);
    else
        snprintf(buf, FIGURE_SIZE, "%.1e", value);
    return buf;
}

char *nd_figure_element(double value, char *buf)
{
    if (!isfinite(value))
        return nd_number_text(value, buf);
    snprintf(buf, FIGURE_SIZE, "%.6g", value);
    return buf;
}

char *nd_figure_cosine(double cosine, char *buf)
{
    const double gap = 1.0 - cosine;

    if (!isfinite(cosine) || gap == 0.0)
        return nd_number_text(cosine, buf);
    if (gap > 0.0 && gap < 5e-5)
        snprintf(buf, FIGURE_SIZE, "1 - %.1e", gap);
    else
        snprintf(buf, FIGURE_SIZE, "%.5f", cosine);
    return buf;
}

char *nd_figure_bound(double bound, char *buf)
{
    char digits[32];

    /* A power of ten in the guide's own spelling, 1e-1; %.0e would write 1e-01. */
    snprintf(digits, sizeof digits, "%.3e", bound);
    if (strncmp(digits, "1.000e-", 7) == 0) {
        const char *exponent = digits + 7;
        while (exponent[0] == '0' && exponent[1] != '\0')
            exponent++;
        snprintf(buf, FIGURE_SIZE, "1e-%s", exponent);
        double back = 0;
        if (nd_number_read(buf, buf + strlen(buf), &back) != NULL && back == bound)
            return buf;
    }
    return nd_number_text(bound, buf);
}

char *nd_figure_bytes(uint64_t bytes, char *buf)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1e3;
    size_t unit = 0;

    if (bytes < 1000) {
        snprintf(buf, FIGURE_SIZE, "%" PRIu64 " B", bytes);
        return buf;
    }
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1e3;
        unit++;
    }
    snprintf(buf, FIGURE_SIZE, value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buf;
}

char *nd_figure_share(double share, char *buf)
{
    const double percent = 100.0 * share;

    if (!isfinite(percent))
        return strcpy(buf, "-");
    if (share < 1.0 && percent > 99.9)
        snprintf(buf, FIGURE_SIZE, ">99.9 %%");
    else
        snprintf(buf, FIGURE_SIZE, percent >= 99.95 ? "%.0f %%" : "%.1f %%", percent);
    return buf;
}

char *nd_figure_count(uint64_t count, char *buf)
{
    snprintf(buf, FIGURE_SIZE, "%" PRIu64, count);
    return buf;
}

char *nd_figure_index(const uint64_t *index, uint32_t len, char *buf)
{
    size_t at = 1;

    buf[0] = '[';
    for (uint32_t i = 0; i < len && i < ND_MAX_RANK; i++)
        at += (size_t)snprintf(buf + at, FIGURE_SIZE - at,
                               i == 0 ? "%" PRIu64 : ", %" PRIu64, index[i]);
    memcpy(buf + at, "]", 2);
    return buf;
}

char *nd_figure_shape(const struct nd_shape *shape, char *buf)
{
    return nd_figure_index(shape->dim, shape->rank, buf);
}
