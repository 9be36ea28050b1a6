/*
 * A lone tensor file (.npy, .pt) as a slot of somebody else's layer: for formats whose
 * records say what a tensor is and whose files hold the values.
 */
#ifndef ND_FORMATS_LONE_SLOT_H
#define ND_FORMATS_LONE_SLOT_H

#include "formats/dump.h"

/* `relative` is below the dump's root.  A file that cannot be read, or holds no tensor or
 * several, gives a broken slot; fails only for want of memory. */
enum nd_status nd_lone_slot(struct dump *dump, const char *relative,
                            struct dump_slot *ret_slot, struct nd_error *err);

#endif
