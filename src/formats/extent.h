/*
 * Inside formats/: the checks of a slot that need no bytes.
 */
#ifndef ND_FORMATS_EXTENT_H
#define ND_FORMATS_EXTENT_H

#include "formats/dump.h"

/* Bytes: decoded members that are larger lie in a file, on every machine. */
enum { ND_MEMBER_IN_MEMORY = 8 * 1024 * 1024 };

/* Bytes of tensor data that an extent gives. */
uint64_t nd_extent_payload(const struct extent *extent);

/* The view of the bytes as they lie, strides applied; data may be NULL to check only. */
enum nd_status nd_slot_storage_view(const struct dump_slot *slot, const void *data,
                                    uint64_t size, struct tensor_view *ret_view,
                                    struct nd_error *err);
/* The same bytes in logical order. */
enum nd_status nd_slot_logical_view(const struct dump_slot *slot,
                                    const struct tensor_view *storage,
                                    struct tensor_view *ret_view, struct nd_error *err);

#endif
