/*
 * Drawing the progress line.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/catalogue.h"

enum { BAR_COLUMNS = 24 };

static const double SHOW_AFTER = 1.0; /* seconds that a run may last unseen */
static const double DRAW_EVERY = 0.1;

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void nd_progress_init(struct progress *progress, const char *when, bool is_tty, bool utf8,
                      const char *lang)
{
    const char *term = getenv("TERM");
    const bool moves = is_tty && term != NULL && strcmp(term, "dumb") != 0;

    *progress = (struct progress){.utf8 = utf8, .lang = lang, .began = seconds_now()};
    progress->always = strcmp(when, "always") == 0;
    progress->wanted = progress->always || (strcmp(when, "auto") == 0 && moves);
}

static void progress_draw(const struct progress *progress, uint64_t done, uint64_t total,
                          double now)
{
    const double share = total == 0 ? 0 : (double)done / (double)total;
    const double spent = now - progress->phase_began;
    const double speed = spent > 0 ? (double)done / spent : 0;
    const int full = (int)(share * BAR_COLUMNS + 0.5);
    char id[64], bar[BAR_COLUMNS * 4 + 1] = "";

    for (int i = 0; i < BAR_COLUMNS; i++)
        strcat(bar, i < full ? (progress->utf8 ? "█" : "#") : (progress->utf8 ? "░" : "-"));
    snprintf(id, sizeof id, "phase.%s", progress->phase);
    const char *phase =
        nd_catalogue_words(id, nd_language_of(progress->utf8 ? progress->lang : NULL));
    fprintf(stderr, "\r%s  %s  %3.0f %%  %.1f GB/s",
            phase == NULL ? progress->phase : phase, bar, 100 * share, speed / 1e9);
    if (speed > 0 && done < total)
        fprintf(stderr, "  ETA %.0f s", (double)(total - done) / speed);
    fputs("\x1b[K", stderr);
    fflush(stderr);
}

void nd_progress_tick(void *user, const char *phase, uint64_t done, uint64_t total)
{
    struct progress *progress = user;
    const double now = seconds_now();
    const char *name = phase == NULL ? "" : phase;

    if (!progress->wanted)
        return;
    if (strcmp(name, progress->phase) != 0) {
        snprintf(progress->phase, sizeof progress->phase, "%s", name);
        progress->phase_began = now;
        progress->drawn_at = 0;
    }
    if (!progress->always && now - progress->began < SHOW_AFTER)
        return;
    if (now - progress->drawn_at < DRAW_EVERY && done < total)
        return;
    progress->drawn_at = now;
    progress->drawn = true;
    progress_draw(progress, done < total ? done : total, total, now);
}

void nd_progress_erase(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\x1b[K", stderr);
    progress->drawn = false;
}
