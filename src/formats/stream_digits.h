/*
 * Numbers as streams of C++ print them: six significant digits, trailing zeros dropped.  3 is
 * 3.00000, and what its last digit leaves open is far less than the text shows.
 */
#ifndef ND_FORMATS_STREAM_DIGITS_H
#define ND_FORMATS_STREAM_DIGITS_H

/* Half of the unit that is open; `printed`: what the text itself leaves open. */
double nd_stream_half_unit(double value, double printed);

#endif
