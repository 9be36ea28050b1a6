/*
 * Reading the environment.  The locale is never set: the variables are only looked at, so
 * that numbers keep their decimal points.
 */
#define _DEFAULT_SOURCE /* ioctl and struct winsize */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_LEAST = 60, WIDTH_MOST = 400, WIDTH_USUAL = 80 };

static const char *setting(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

/* The first of the variables that is set to something. */
static const char *setting_of(const char *first, const char *second, const char *third)
{
    const char *value = setting(first);

    if (value == NULL)
        value = setting(second);
    return value == NULL ? setting(third) : value;
}

static bool locale_is_utf8(void)
{
    const char *locale = setting_of("LC_ALL", "LC_CTYPE", "LANG");

    return locale != NULL &&
           (strstr(locale, "UTF-8") != NULL || strstr(locale, "utf8") != NULL ||
            strstr(locale, "UTF8") != NULL || strstr(locale, "utf-8") != NULL);
}

static bool is_dumb(void)
{
    const char *term = getenv("TERM");

    return term == NULL || strcmp(term, "dumb") == 0;
}

static bool is_forced(const char *name)
{
    const char *value = setting(name);

    return value != NULL && strcmp(value, "0") != 0;
}

/* The option first, then NO_COLOR, then what forces colour, then the terminal. */
static bool color_wanted(const char *color, bool is_tty)
{
    if (strcmp(color, "auto") != 0)
        return strcmp(color, "always") == 0;
    if (setting("NO_COLOR") != NULL)
        return false;
    if (is_forced("CLICOLOR_FORCE") || is_forced("FORCE_COLOR"))
        return true;
    return is_tty && !is_dumb();
}

static unsigned terminal_width(bool is_tty)
{
    struct winsize size;
    const char *columns = setting("COLUMNS");
    long width = columns == NULL ? 0 : strtol(columns, NULL, 10);

    if (width <= 0 && is_tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = WIDTH_USUAL;
    return (unsigned)(width < WIDTH_LEAST  ? WIDTH_LEAST
                      : width > WIDTH_MOST ? WIDTH_MOST
                                           : width);
}

void nd_terminal_init(struct terminal *terminal, const char *color, const char *lang)
{
    const char *chosen = lang != NULL ? lang : setting("NORMDIFF_LANG");
    const char *language =
        chosen != NULL ? chosen : setting_of("LC_ALL", "LC_MESSAGES", "LANG");

    terminal->out_is_tty = isatty(STDOUT_FILENO) == 1;
    terminal->err_is_tty = isatty(STDERR_FILENO) == 1;
    terminal->width = terminal_width(terminal->out_is_tty);
    terminal->color = color_wanted(color, terminal->out_is_tty);
    terminal->lang_asked = lang;
    terminal->lang = language != NULL && strncmp(language, "zh", 2) == 0 ? "zh" : "en";
    /* Whoever asks for Chinese by name has a terminal that shows it. */
    terminal->utf8 =
        locale_is_utf8() || (chosen != NULL && strcmp(terminal->lang, "zh") == 0);
}
