/*
 * The table as one of the sides sees it: figures of the side that is thought wrong, in
 * units of the one that is thought right, and how likely numbers are that lie so.
 */
#ifndef ND_CHECKS_CHANNEL_VIEW_H
#define ND_CHECKS_CHANNEL_VIEW_H

#include "checks/channel_table.h"

/* Densities never get sharper than this. */
#define CHANNEL_LEAST_SPREAD 1e-7

/* p is right and q is wrong. */
struct channel_view {
    uint64_t count;
    double *gain;            /* log |q's scale / p's| */
    double *lift;            /* q's level - p's, over p's scale and deviation */
    double *level;           /* q's level over the same */
    double *offset;          /* mean over deviation */
    double *scale;           /* p's scale */
    double *deviation, *noise;
    bool *is_turned;         /* the sides' scales have different signs */
    double *residual, *unit; /* work space */
    double log_most, mean_most; /* spreads that statistics may have */
};

/* Room for the table's channels, or even steps through very many; false without memory. */
bool nd_channel_view_open(const struct channel_table *table, struct channel_view *ret);
void nd_channel_view_close(struct channel_view *view);
void nd_channel_view_fill(const struct channel_table *table, int wrong,
                          struct channel_view *view);

/* Log density of x about zero. */
double nd_channel_density(double x, double sigma);

/* Of the values x, each known to its noise, about zero by a spread of `unit` (NULL: 1)
 * each: the best spread between the two. */
double nd_channel_spread(const struct channel_view *view, const double *x,
                         const double *unit, double least, double most);

/* Their middle value. */
double nd_channel_middle(const struct channel_view *view, const double *x);

#endif
