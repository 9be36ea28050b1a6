/*
 * Prefixes of log lines, one function per family; each returns the length of one prefix at
 * `p`, or 0.  The shapes are those of docs/formats/logs.md.
 */
#include "formats/log_prefix.h"

#include <string.h>
#include <strings.h>

/* '9' matches a digit, anything else itself.  Length of the template, or 0. */
static size_t match(const char *p, const char *end, const char *pattern)
{
    const size_t len = strlen(pattern);

    if ((size_t)(end - p) < len)
        return 0;
    for (size_t i = 0; i < len; i++)
        if (pattern[i] == '9' ? !nd_char_digit(p[i]) : p[i] != pattern[i])
            return 0;
    return len;
}

static size_t run_of(const char *p, const char *end, bool (*is)(char))
{
    size_t len = 0;

    while (p + len < end && is(p[len]))
        len++;
    return len;
}

static bool is_blank(char c)
{
    return c == ' ';
}

static bool is_path(char c)
{
    return nd_char_word(c) || c == '.' || c == '/' || c == '-';
}

static size_t blanks(const char *p, const char *end)
{
    return run_of(p, end, is_blank);
}

/* "10:11:12", with a fraction and a zone. */
static size_t time_len(const char *p, const char *end)
{
    size_t len = match(p, end, "99:99:99");

    if (len == 0)
        return 0;
    if (p + len + 1 < end && (p[len] == '.' || p[len] == ',') && nd_char_digit(p[len + 1]))
        len += 1 + run_of(p + len + 1, end, nd_char_digit);
    if (p + len < end && p[len] == 'Z')
        return len + 1;
    const size_t zone = match(p + len, end, "+99:99") + match(p + len, end, "-99:99");
    return len + zone;
}

/* A date, a time, or both: "2024-03-05T10:11:12.345Z", "03/05/2024-10:11:12". */
static size_t stamp_len(const char *p, const char *end)
{
    static const char *const dates[] = {"9999-99-99", "9999/99/99", "99/99/9999",
                                        "99/99/99"};
    size_t date = 0;

    for (size_t i = 0; i < sizeof dates / sizeof dates[0] && date == 0; i++)
        date = match(p, end, dates[i]);
    if (date == 0 && match(p, end, "99-99 ") > 0) { /* vLLM leaves the year out */
        const size_t time = time_len(p + 6, end);
        return time > 0 ? 6 + time : 0;
    }
    if (date == 0)
        return time_len(p, end);
    if (p + date < end && memchr(" T-_", p[date], 4) != NULL) {
        const size_t time = time_len(p + date + 1, end);
        if (time > 0)
            return date + 1 + time;
    }
    return date;
}

/* A stamp with what encloses and follows it: "[...]", "(pid)", and a dash or a bar. */
static size_t prefix_stamp(const char *p, const char *end)
{
    const bool bracket = p < end && *p == '[';
    const size_t stamp = stamp_len(p + bracket, end);
    size_t len = stamp + bracket;

    if (stamp == 0 || (bracket && (p + len >= end || p[len] != ']')))
        return 0;
    len += bracket;
    if (p + len < end && p[len] == '(') {
        const size_t digits = run_of(p + len + 1, end, nd_char_digit);
        if (digits > 0 && p + len + 1 + digits < end && p[len + 1 + digits] == ')')
            len += digits + 2;
    }
    if (p + len < end && memchr(" -:|", p[len], 4) == NULL)
        return 0;
    return len;
}

/* "12: " of ctest. */
static size_t prefix_number(const char *p, const char *end)
{
    const size_t digits = run_of(p, end, nd_char_digit);

    return digits > 0 && digits <= 6 && match(p + digits, end, ": ") > 0 ? digits + 1 : 0;
}

/* "I0305 10:11:12.345678  4242 compare.cpp:88] " of glog. */
static size_t prefix_glog(const char *p, const char *end)
{
    if (p >= end || memchr("IWEFD", *p, 5) == NULL || match(p + 1, end, "9999 ") == 0)
        return 0;
    const size_t time = time_len(p + 6, end);
    if (time == 0)
        return 0;
    const char *closing = memchr(p + 6 + time, ']', (size_t)(end - p) - 6 - time);
    return closing != NULL && closing - p < 200 ? (size_t)(closing - p) + 1 : 0;
}

/* The rank in "rank3", "Rank 3", "rank:3", "rank=3"; -1 if it says none. */
static int64_t rank_in(const char *p, const char *end)
{
    if (end - p < 5 || strncasecmp(p, "rank", 4) != 0)
        return -1;
    p += 4;
    while (p < end && memchr(" :=_", *p, 4) != NULL)
        p++;
    const size_t digits = run_of(p, end, nd_char_digit);
    int64_t rank = 0;
    if (digits == 0 || digits > 9 || p + digits != end)
        return -1;
    for (size_t i = 0; i < digits; i++)
        rank = rank * 10 + (p[i] - '0');
    return rank;
}

static int64_t whole_number(const char *p, const char *end)
{
    int64_t value = 0;

    if (p == end || end - p > 9)
        return -1;
    for (; p < end; p++) {
        if (!nd_char_digit(*p))
            return -1;
        value = value * 10 + (*p - '0');
    }
    return value;
}

/* "[rank3]:", "[1,0]<stdout>:", "[default0]:", "[INFO]", "[TRT]", "[core.py:77]". */
static size_t prefix_bracket(const char *p, const char *end, struct log_tags *tags)
{
    static const char out[] = "<stdout>:", err[] = "<stderr>:";

    if (p >= end || *p != '[')
        return 0;
    const size_t most = end - p > 80 ? 80 : (size_t)(end - p);
    const char *closing = memchr(p, ']', most);
    if (closing == NULL || memchr(p, '=', (size_t)(closing - p)) != NULL)
        return 0;
    const char *inner = p + 1, *after = closing + 1;
    int64_t rank = rank_in(inner, closing);
    if ((size_t)(end - after) >= sizeof out - 1 &&
        (memcmp(after, out, sizeof out - 1) == 0 ||
         memcmp(after, err, sizeof err - 1) == 0)) {
        const char *comma = memchr(inner, ',', (size_t)(closing - inner)); /* job, rank */
        rank = whole_number(comma == NULL ? inner : comma + 1, closing);
        after += sizeof out - 1;
    } else if (after < end && *after == ':') {
        if (rank < 0 && closing - inner > 7 && memcmp(inner, "default", 7) == 0)
            rank = whole_number(inner + 7, closing);
        after++;
    }
    if (rank >= 0)
        tags->rank = rank;
    return (size_t)(after - p);
}

/* "(EngineCore_DP0 pid=4242)". */
static size_t prefix_process(const char *p, const char *end)
{
    if (p >= end || *p != '(')
        return 0;
    const size_t most = end - p > 80 ? 80 : (size_t)(end - p);
    const char *closing = memchr(p, ')', most);
    if (closing == NULL)
        return 0;
    for (const char *c = p; c + 4 < closing; c++)
        if (memcmp(c, "pid=", 4) == 0)
            return (size_t)(closing - p) + 1;
    return 0;
}

/* "INFO", "WARNING:", "INFO:root:" is this and prefix_logger. */
static size_t prefix_level(const char *p, const char *end)
{
    static const char *const levels[] = {"INFO",  "WARNING", "WARN",  "ERROR",
                                         "DEBUG", "TRACE",   "FATAL", "CRITICAL"};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        const size_t len = strlen(levels[i]);
        if ((size_t)(end - p) > len && memcmp(p, levels[i], len) == 0 &&
            memchr(" :|", p[len], 3) != NULL)
            return len + (p[len] == ':');
    }
    return 0;
}

/* "root:" right behind "INFO:"; "core.py:77:"; "hooks - " and "hooks | " after a stamp. */
static size_t prefix_logger(const char *p, const char *end, const char *line)
{
    const size_t word = run_of(p, end, is_path);

    if (word == 0 || p == line)
        return 0;
    const char *after = p + word;
    if (match(after, end, " - ") > 0)
        return word + 3;
    if (after >= end || *after != ':')
        return 0;
    const size_t digits = run_of(after + 1, end, nd_char_digit);
    if (digits > 0 && match(after + 1 + digits, end, ":") > 0 &&
        memchr(p, '.', word) != NULL)
        return word + digits + 2;
    return p[-1] == ':' ? word + 1 : 0;
}

/* "rank 3: ", "Rank 0 | ". */
static size_t prefix_rank(const char *p, const char *end, struct log_tags *tags)
{
    size_t len = 4;

    if (end - p < 6 || strncasecmp(p, "rank", 4) != 0)
        return 0;
    while (p + len < end && memchr(" =_", p[len], 3) != NULL)
        len++;
    len += run_of(p + len, end, nd_char_digit);
    const int64_t rank = rank_in(p, p + len);
    if (rank < 0 || p + len >= end || memchr(" :|", p[len], 3) == NULL)
        return 0;
    tags->rank = rank;
    return len + (p[len] == ':');
}

/* "trt-runner-N0-03/05/24-10:11:12: " of Polygraphy. */
static size_t prefix_runner(const char *p, const char *end, struct log_tags *tags)
{
    static const char stamp[] = "-99/99/99-99:99:99: ";
    const size_t most = end - p > 120 ? 120 : (size_t)(end - p);

    for (size_t i = 1; i < most && p[i] != ' '; i++) {
        if (match(p + i, end, stamp) == 0)
            continue;
        tags->runner = (struct slice){p, i};
        return i + sizeof stamp - 1;
    }
    return 0;
}

/* Verdicts and words that introduce a name. */
static size_t prefix_word(const char *p, const char *end)
{
    static const char *const words[] = {"OK ",  "PASS ",  "PASSED ", "FAIL ",   "FAILED ",
                                        "*** ", "- ",     "| ",      "NaN in ", "Inf in ",
                                        ">>> ", "layer ", "Layer ",  "module ", "Module "};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t len = strlen(words[i]);
        if ((size_t)(end - p) > len && memcmp(p, words[i], len) == 0)
            return len;
    }
    return 0;
}

static size_t prefix_any(const char *p, const char *end, const char *line,
                         struct log_tags *tags)
{
    size_t len = prefix_stamp(p, end);

    len = len > 0 ? len : prefix_number(p, end);
    len = len > 0 ? len : prefix_glog(p, end);
    len = len > 0 ? len : prefix_bracket(p, end, tags);
    len = len > 0 ? len : prefix_process(p, end);
    len = len > 0 ? len : prefix_level(p, end);
    len = len > 0 ? len : prefix_rank(p, end, tags);
    len = len > 0 ? len : prefix_runner(p, end, tags);
    len = len > 0 ? len : prefix_word(p, end);
    return len > 0 ? len : prefix_logger(p, end, line);
}

size_t nd_log_peel(const char *at, const char *end, const char *ret_starts[ND_LOG_PREFIXES],
                   struct log_tags *ret_tags)
{
    const char *line = at;
    size_t count = 0;

    *ret_tags = (struct log_tags){.rank = -1};
    at += blanks(at, end);
    ret_starts[count++] = at;
    while (count < ND_LOG_PREFIXES) {
        size_t len = prefix_any(at, end, line, ret_tags);
        if (len == 0)
            break;
        len += blanks(at + len, end);
        at += len;
        /* A dash or a colon that only joins: "... 10:11:12(4242)-[INFO]". */
        if (at < end && (*at == '-' || *at == ':') && at + 1 < end &&
            memchr(" [", at[1], 2) != NULL)
            at += 1 + blanks(at + 1, end);
        ret_starts[count++] = at;
    }
    return count;
}
