/*
 * The folders below the root of a dump, one after the other: the files of a folder before
 * those of the folders in it.  Hidden folders, links and devices are not entered, and listed
 * as ignored.
 */
#ifndef ND_FORMATS_WALK_FOLDERS_H
#define ND_FORMATS_WALK_FOLDERS_H

#include "formats/dump.h"

/* Takes the files of one folder. */
typedef enum nd_status nd_walk_fn(void *user, struct dump *dump,
                                  const struct dump_directory *directory,
                                  struct nd_error *err);

enum nd_status nd_walk_folders(struct dump *dump, nd_walk_fn *take, void *user,
                               struct nd_error *err);

/* The path of a name below a folder; NULL: out of memory. */
const char *nd_walk_path(struct dump *dump, const char *folder, const char *name);

#endif
