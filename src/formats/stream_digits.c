/*
 * What the last digit of a stream's number leaves open.
 */
#include "formats/stream_digits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

double nd_stream_half_unit(double value, double printed)
{
    char text[40];
    double six;

    if (value == 0 || !isfinite(value))
        return 0;
    snprintf(text, sizeof text, "%.5e", fabs(value));
    const int exponent = atoi(strchr(text, 'e') + 1);
    snprintf(text, sizeof text, "5e%d", exponent - 6);
    return nd_number_read(text, text + strlen(text), &six) != NULL && six < printed
               ? six
               : printed;
}
