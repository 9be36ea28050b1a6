/*
 * A dump format: how to recognise one, and how to list the tensors in it.
 *
 * A format never reads tensor data and owns no memory.  It records where each tensor
 * lies; dump.c checks every extent against the file, once, for all formats.
 */
#ifndef ND_FORMATS_FORMAT_H
#define ND_FORMATS_FORMAT_H

#include "formats/dump.h"

/* What a probe may look at: the first bytes (the whole file is mapped) and the name. */
struct dump_head {
    const unsigned char *bytes;
    uint64_t             size; /* of the whole file */
    const char          *name; /* base name, for messages only: never evidence */
};

struct dump_format {
    const char *name;  /* the --input-format word: lower case */
    const char *title; /* for people: "NumPy array (.npy)" */

    /* Bits of evidence that this file is ours; 0 is "no".  Must not fail.  NULL: the
     * format is a directory and claims one through probe_directory. */
    int (*probe)(const struct dump_head *head);

    /* Bits of evidence for a directory, from its sorted entry names. */
    int (*probe_directory)(const struct dump_directory *directory);

    /*
     * Calls nd_dump_add_layer()/nd_dump_add_slot() in the order the dump gives.  `file`
     * is the index of the mapped file (0 for a lone file); unused for directories.
     */
    enum nd_status (*index)(struct dump *dump, size_t file, struct nd_error *err);

    /* Lines of text that may stand beside the tensors of a run: in a directory they count
     * only where nothing else is there. */
    bool is_log;
};

#define ND_FORMAT(word) extern const struct dump_format nd_format_##word;
#include "formats/formats.def"
#undef ND_FORMAT

/* All formats, from formats.def; NULL past the last. */
const struct dump_format *nd_format_at(size_t i);
const struct dump_format *nd_format_by_name(const char *name);
/* The format with the most evidence; NULL if none has any. */
const struct dump_format *nd_format_recognise(const struct dump_head *head);
const struct dump_format *
nd_format_recognise_directory(const struct dump_directory *directory);
/* What a file is that no format claims, by name and with a hint where one is known. */
enum nd_status nd_format_unknown(const struct dump_head *head, struct nd_error *err);
/* The same for a word that --input-format does not know: lists the words. */
enum nd_status nd_format_bad_word(const char *word, struct nd_error *err);

/* Whether a description of raw numbers (NULL: none) can be understood at all. */
enum nd_status nd_raw_check(const char *raw, struct nd_error *err);

#endif
