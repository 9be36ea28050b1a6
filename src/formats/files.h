/*
 * Inside formats/: the files of a dump, how they are opened and opened again.
 */
#ifndef ND_FORMATS_FILES_H
#define ND_FORMATS_FILES_H

#include "formats/dump.h"

/* Opens what the user typed as the dump's file 0 or as its root folder. */
enum nd_status nd_files_open(struct dump *dump, struct nd_error *err);
/* Adds bytes of the caller as file 0. */
enum nd_status nd_files_borrow(struct dump *dump, const void *bytes, uint64_t size,
                               struct nd_error *err);
void nd_files_close(struct dump *dump);

/* Says which files nd_dump_file_add will be asked for next, in this order: they are opened
 * on all processors, some at a time.  A hint: what goes wrong is told when it is asked for.
 * The names must stay where they are until the last one was added, or *_done. */
enum nd_status nd_files_ahead(struct dump *dump, const char *const *names, size_t count,
                              struct nd_error *err);
void nd_files_ahead_done(struct dump *dump);

/* Maps a file that rests; the mapping is the caller's.  A file that is not what it was
 * when it was indexed is ND_ERR_CHANGED. */
enum nd_status nd_file_reopen(const struct dump *dump, const struct dump_file *file,
                              struct map *ret_map, struct nd_error *err);
/* Maps it again for indexing, if it rests. */
enum nd_status nd_file_wake(struct dump *dump, size_t file, struct nd_error *err);

/* The folder that relative names are opened below; of a lone dump the one it lies in. */
enum nd_status nd_root_open(struct dump *dump, struct nd_error *err);
/* Maps a regular file below a folder. */
enum nd_status nd_folder_map(int root, const char *relative, struct map *ret_map,
                             struct nd_error *err);

/* Decompresses gzip bytes (one or more members) into a spool file and maps that. */
enum nd_status nd_gunzip(const unsigned char *bytes, uint64_t size, struct map *ret_map,
                         struct nd_error *err);
bool nd_is_gzip(const unsigned char *bytes, uint64_t size);

#endif
