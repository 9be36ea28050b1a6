/*
 * A dump in memory: files, layers, slots, extents.  Formats fill it through the nd_dump_
 * functions; compare/ reads it.  Everything in it lives in the dump's arena.
 */
#ifndef ND_FORMATS_DUMP_H
#define ND_FORMATS_DUMP_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/map.h"
#include "formats/name_table.h"
#include "tensor/layout.h"

enum codec { CODEC_STORED, CODEC_DEFLATE, CODEC_PIECES };

struct pieces;

/* Where a tensor's bytes lie in one file. */
struct extent {
    size_t     file;
    uint64_t   offset, size; /* as stored (compressed size for deflate) */
    enum codec codec;
    uint64_t   skip;     /* bytes of the decoded stream before the data (an inner header) */
    uint64_t   raw_size; /* decoded bytes, skip included; = size when stored */
    bool       has_crc;  /* the whole decoded member's CRC-32 is known: checked on opening */
    uint32_t   crc;
    uint64_t   crc_offset, crc_size; /* stored: the byte range that the CRC covers */
    const struct pieces *pieces; /* of CODEC_PIECES: parts in several files; pieces.h */
};

enum direction { DIRECTION_FORWARD, DIRECTION_BACKWARD };

struct dump_slot {
    const char       *name;
    enum nd_evidence  evidence;
    enum nd_dtype     dtype;      /* of the bytes (NONE for pure statistics without one) */
    enum nd_dtype     real_dtype; /* NONE: same */
    const char       *dtype_text; /* as the dump spells it, where dtype is NONE */
    struct nd_shape   storage;    /* shape of the bytes; for statistics the tensor's */
    const struct nd_shape *logical; /* NULL: = storage */
    bool              has_shape;
    bool              strided;    /* stride[] and base apply, in elements of the extent */
    bool              swapped;    /* big-endian */
    bool              layout_broken; /* `broken`, but only by its layout: bytes are there */
    bool              has_order;  /* order[] applies: the view's axis k is the layout's
                                   * logical axis order[k], as another framework orders
                                   * them */
    bool              has_statistics;
    bool              undefined;  /* content has no meaning by nature */
    bool              sharded;    /* a part of the whole tensor, as shard_ says */
    uint8_t           order[ND_MAX_RANK];
    const int64_t    *stride;     /* one for each dimension of storage, where strided */
    uint64_t          base;
    const struct layout *layout;  /* NULL: logical */
    const char       *layout_text; /* a layout without a formula, or a device format note */
    uint32_t          c0;
    uint64_t          groups;     /* of a convolution whose weight lies in blocks; 0: none */
    struct extent     extent;     /* values */
    struct statistics statistics; /* NAN where absent */
    const char       *checksum;   /* as printed, with its kind: "crc32:1a2b3c4d" */
    const char       *broken;     /* why this tensor cannot be read; NULL: it can */
    const char       *note;       /* short id to show with the pair; NULL: none */
    uint64_t          shard_axis, shard_index, shard_of;
    const uint64_t   *valid;      /* valid positions per sample along the token axis */
    size_t            valid_count; /* 1: the same for every sample; 0: all are valid */
    const char       *device;     /* NULL: unknown */
    atomic_uchar     *crc_state;  /* shared by all openings: set by nd_dump_add_slot */
};

struct dump_layer {
    const char       *name, *type; /* type "" where unknown */
    enum direction    direction;
    int64_t           call;
    int64_t           step, rank; /* -1: none */
    double            time;       /* timestamp order; NAN: none */
    bool              container, recompute;
    int64_t           micro_step; /* -1: none */
    const char       *parent;     /* NULL: derived from the name */
    const char       *frame;      /* of a call: the module that it ran in, dumped or not; NULL: unknown */
    struct attribute *attributes;
    size_t            attribute_count, attribute_capacity;
    struct dump_slot *slots;
    size_t            slot_count, slot_capacity;
    const char       *stack;      /* lines joined by \n; NULL: none */
};

struct dump_file {
    const char *path; /* for messages: the dump's path, and what lies below it */
    const char *open_name; /* what to open, relative to root_fd; NULL: `map` is the file */
    struct map  map;
    bool        is_mapped;
    bool        is_borrowed; /* bytes of the caller, not a mapping */
    bool        is_gzip;     /* `map` is the decompressed spool */
    uint64_t    size;        /* of the bytes that extents count in */
    uint64_t    disk_size;   /* of the file as it lies */
    const char *stem;        /* what nd_dump_stem says; NULL: derived from the name */
};

/* One directory's sorted entries (byte order), for probes and for walking. */
struct dump_directory {
    int          fd; /* of the root; -1 for a folder below it.  The dump's: do not close */
    const char  *path; /* relative to the root, "" for the root itself */
    const char **names;      /* regular files */
    size_t       name_count;
    const char **folders;
    size_t       folder_count;
    const char **others; /* symbolic links, pipes, devices: never opened */
    size_t       other_count;
};

struct dump {
    struct arena             *arena;
    const char               *path; /* as typed */
    const struct dump_format *format;
    const char               *input_format; /* --input-format word, or NULL */
    struct dump_file         *files;
    size_t                    file_count, file_capacity;
    int                       root_fd; /* files are opened below it; -1: none */
    bool                      is_lone; /* one file, not a directory */
    const char               *prefix;  /* put before names of a container in a directory */
    struct name_table        *names;   /* layers and slots by name: names.c */
    struct arena             *scratch; /* what only indexing needs; NULL once that is done */
    struct files_ahead       *ahead;   /* files opened before they are asked for */
    struct dump_directory    *top;     /* what the root holds, once it was read */
    unsigned                  index_depth; /* files that refer to files */
    struct dump_layer        *layers;
    size_t                    layer_count, layer_capacity;
    const char              **ignored; /* things that are no tensors */
    size_t                    ignored_count, ignored_capacity;
    uint64_t                  bytes; /* of tensor data, as stored */
    size_t                    tensor_count;
    size_t                    attribute_count; /* of all layers */
    struct dump_slot         *spare[8]; /* outgrown lists of 1, 2, 4 ... slots, for others */
    const char               *kept[128]; /* texts of late, by hash, for others */
    enum nd_order             order;
    bool                      partial; /* the writing run did not finish */
    bool                      grouped; /* the format has layers of its own, no name grammar */
    const char               *device, *framework, *model, *autocast, *loss, *raw;
    int                       deterministic; /* -1: unknown */
    double                    seed; /* NAN: unknown */
    int64_t                   step, rank; /* of layers added from here on; -1: none */
};

/*
 * Opens and indexes a path ("-": standard input).  input_format NULL: by content.
 * raw: the --raw description or NULL.  On failure nothing is left behind.
 */
enum nd_status nd_dump_open(const char *path, const char *input_format, const char *raw,
                            struct dump **ret_dump, struct nd_error *err);
void nd_dump_close(struct dump *dump); /* NULL is fine */
/* The same for a file that lies in memory; the bytes stay the caller's and must outlive
 * the dump.  `name` stands for the path: its stem names a lone tensor. */
enum nd_status nd_dump_open_bytes(const void *bytes, uint64_t size, const char *name,
                                  const char *input_format, const char *raw,
                                  struct dump **ret_dump, struct nd_error *err);

/* Both sides of an offline comparison, found below its root, which stays where it is: paths
 * to open, and the ATC model as JSON (NULL: there is none), which maps fused operators. */
struct dump_sides {
    const char *reference, *candidate, *fusion;
};
enum nd_status nd_dump_find_sides(const char *root, struct arena *arena,
                                  struct dump_sides *ret_sides, struct nd_error *err);
/* The model beside a candidate that lies in such a folder; *ret_fusion stays as it is where
 * there is none. */
enum nd_status nd_dump_find_model(const char *candidate, struct arena *arena,
                                  const char **ret_fusion, struct nd_error *err);

/* --- for formats ------------------------------------------------------------------- */

struct cursor nd_dump_bytes(const struct dump *dump, size_t file);
/*
 * What a lone tensor of this file is called: the base name without its extension; in a
 * directory the path below the root, without an extension that is a known one.  NULL: out
 * of memory.
 */
const char *nd_dump_stem(struct dump *dump, size_t file);
/* A path without its extension, if that is one that dumps have.  NULL: out of memory. */
const char *nd_dump_path_stem(struct dump *dump, const char *path);

/* A layer with defaults: forward, call 0, the dump's step and rank.  NULL: out of memory.
 * The pointer is good until the next call. */
struct dump_layer *nd_dump_add_layer(struct dump *dump, const char *name, const char *type);
/* Appends a copy of *slot, and of what it points to, to the layer and checks its extent and
 * shape; a slot whose extent does not fit its file becomes broken, with the reason. */
enum nd_status nd_dump_add_slot(struct dump *dump, struct dump_layer *layer,
                                const struct dump_slot *slot, struct nd_error *err);
/* Gives back the room for further slots of a layer that has all; its slots may move. */
enum nd_status nd_dump_trim_layer(struct dump *dump, struct dump_layer *layer,
                                  struct nd_error *err);
/* A slot with every "absent" value set. */
struct dump_slot nd_dump_slot_init(void);
/*
 * For containers that know names only: applies the slot grammar ("conv1.output.0",
 * "conv1/input/0", "bn.weight", "bn.running_mean") to find or make the layer, in order of
 * first appearance, and adds the slot.
 */
enum nd_status nd_dump_add_tensor(struct dump *dump, const char *name,
                                  const struct dump_slot *slot, struct nd_error *err);
/*
 * For files that hold one nameless tensor: the layer is the stem, the slot output.0; in a
 * directory the slot grammar applies to the stem.
 */
enum nd_status nd_dump_add_lone(struct dump *dump, size_t file,
                                const struct dump_slot *slot, struct nd_error *err);
/* Copies the attribute, texts included. */
enum nd_status nd_dump_add_attribute(struct dump *dump, struct dump_layer *layer,
                                     const struct attribute *attribute,
                                     struct nd_error *err);
enum nd_status nd_dump_ignore(struct dump *dump, const char *what, struct nd_error *err);
/* An error as one text, for dump_slot.broken; in the dump's arena, NULL: out of memory. */
const char *nd_dump_reason(struct dump *dump, const struct nd_error *error);

/*
 * Directories.  nd_dump_directory_read lists a folder below the root ("" is the root)
 * without following links; nd_dump_file_add maps one file of it and returns its index; in
 * a lone dump the root is the folder that holds the file.  nd_dump_file_rest may unmap it
 * again (it is reopened when a tensor of it is read), so that directories of 100,000
 * files do not exhaust the mappings of a process.
 */
enum nd_status nd_dump_directory_read(struct dump *dump, const char *folder,
                                      struct dump_directory *ret_directory,
                                      struct nd_error *err);
enum nd_status nd_dump_file_add(struct dump *dump, const char *relative, size_t *ret_file,
                                struct nd_error *err);
/* Takes over a mapping of a temporary file (decoded data) as one more file; closed on
 * failure too. */
enum nd_status nd_dump_file_take(struct dump *dump, const char *path, struct map *map,
                                 size_t *ret_file, struct nd_error *err);
void nd_dump_file_rest(struct dump *dump, size_t file);
/* Recognises and indexes a file already added: directories of any lone-file format. */
enum nd_status nd_dump_index_file(struct dump *dump, size_t file, struct nd_error *err);
/* The format that nd_dump_index_file would use; NULL: none, and *err says what it is. */
const struct dump_format *nd_dump_recognise_file(struct dump *dump, size_t file,
                                                 struct nd_error *err);

/* --- for compare ------------------------------------------------------------------- */

/* An opened tensor: the view, and what must be released. */
struct open_slot {
    struct tensor_view view;    /* logical order */
    struct tensor_view storage; /* the bytes as they lie, for padding checks and searches */
    struct map         own_map; /* a file mapped for this slot alone, or a spooled member */
    bool               has_own_map;
    void              *own_memory; /* a small inflated member; NULL: none */
    size_t             file;
    const struct dump *dump;
};

/* The N of a slot that is called head + "N" ("output.3" under "output."), if it is below the
 * bound; false for other slots. */
bool nd_slot_numbered(const char *name, const char *head, size_t below, size_t *ret_number);

/*
 * Maps (or inflates) a slot's values.  The status is about this tensor only: malformed
 * members, bad CRCs and unsupported things never end the run.  Thread-safe.
 */
enum nd_status nd_slot_open(const struct dump *dump, const struct dump_slot *slot,
                            struct open_slot *ret_open, struct nd_error *err);
/* A slot and the dump that it is of. */
struct slot_at {
    const struct dump      *dump;
    const struct dump_slot *slot;
};
/* Checks the CRC-32 of large stored members with all threads, which opening their slots
 * would do one by one; opening tells what was found. */
void nd_slots_check_stored(const struct slot_at *slots, size_t count, unsigned jobs);
/* False if the file shrank while the slot was open (what was measured is void). */
bool nd_slot_close(struct open_slot *open);

/*
 * Deflated slots as streams.  nd_slot_streams: its bytes are deflated, and stand in logical
 * order.  nd_slot_view_of: the view that nd_slot_open would give, without data.  A stream
 * is read from its start; with to_end, closing checks what only the end tells (the length
 * and the CRC-32).  It is freed in any case.  Thread-safe for different streams.
 */
struct slot_stream;
bool nd_slot_streams(const struct dump_slot *slot);
enum nd_status nd_slot_view_of(const struct dump_slot *slot, struct tensor_view *ret_view,
                               struct nd_error *err);
enum nd_status nd_slot_stream_open(const struct dump *dump, const struct dump_slot *slot,
                                   struct slot_stream **ret_stream, struct nd_error *err);
enum nd_status nd_slot_stream_read(struct slot_stream *stream, void *out, uint64_t bytes,
                                   struct nd_error *err);
enum nd_status nd_slot_stream_close(struct slot_stream *stream, bool to_end,
                                    struct nd_error *err);

#endif
