/*
 * Inside the readers of CANN's folders: which operators overflowed.
 */
#ifndef ND_FORMATS_CANN_MARKS_H
#define ND_FORMATS_CANN_MARKS_H

#include "formats/cann_overflow.h"
#include "formats/cann_tree.h"

struct cann_mark {
    const struct tree_file *file; /* the op debug dump */
    struct cann_overflow overflow;
    uint64_t task, stream;
    bool is_used;
};

struct cann_marks {
    struct cann_mark *list;
    size_t count, capacity;
};

enum nd_status nd_cann_marks_add(struct dump *dump, struct cann_marks *marks,
                                 const struct tree_file *file,
                                 const struct cann_overflow *overflow,
                                 struct nd_error *err);
/* Marks the dump's layers, whose files owners[] are; what finds none is listed as ignored.
 */
enum nd_status nd_cann_marks_apply(struct dump *dump, struct cann_marks *marks,
                                   const struct tree_file *const *owners,
                                   struct nd_error *err);

#endif
