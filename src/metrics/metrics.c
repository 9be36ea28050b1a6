/*
 * The table of metrics (metrics.def).
 */
#include "metrics/metric.h"

#define ND_METRIC(word) extern const struct metric nd_metric_##word;
#include "metrics/metrics.def"
#undef ND_METRIC

static const struct metric *const metrics[] = {
#define ND_METRIC(word) &nd_metric_##word,
#include "metrics/metrics.def"
#undef ND_METRIC
};

size_t nd_metric_count(void)
{
    return sizeof metrics / sizeof *metrics;
}

const struct metric *nd_metric_at(size_t i)
{
    return metrics[i];
}

static bool metric_is_called(const struct metric *metric, const char *name)
{
    const char *key = metric->key;

    for (; *key != '\0' && (*name == *key || (*name == '-' && *key == '_')); key++)
        name++;
    return *key == '\0' && *name == '\0';
}

const struct metric *nd_metric_by_name(const char *key)
{
    for (size_t i = 0; i < nd_metric_count(); i++)
        if (metric_is_called(metrics[i], key))
            return metrics[i];
    return NULL;
}
