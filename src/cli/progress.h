/*
 * The progress line on standard error: phase, bar, percent, speed, time left.  It shows
 * itself only on runs that last, and is erased at the end.
 */
#ifndef ND_CLI_PROGRESS_H
#define ND_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool wanted, always, utf8, drawn;
    const char *lang;
    double began, phase_began, drawn_at; /* seconds */
    char phase[32];
};

/* when: "auto", "always" or "never". */
void nd_progress_init(struct progress *progress, const char *when, bool is_tty, bool utf8,
                      const char *lang);
/* An nd_progress_fn; user is the struct progress. */
void nd_progress_tick(void *user, const char *phase, uint64_t done, uint64_t total);
void nd_progress_erase(struct progress *progress);

#endif
