/*
 * NumPy arrays (.npy), versions 1 to 3, as NumPy's format.py (1.24) writes and describes
 * them.
 *
 *   1. 6 bytes  "\x93NUMPY"
 *   2. 1 byte   major version 1, 2 or 3; 1 byte minor version 0
 *   3. u16 (version 1) or u32 (2, 3), little-endian: length of the header text
 *   4. the text: a Python literal {'descr': '<f4', 'fortran_order': False,
 *      'shape': (4, 128), } padded with blanks to a multiple of 64 and ended by a newline;
 *      latin-1, in version 3 UTF-8.  Keys come in any order; Python 2 wrote 4L for 4
 *   5. the elements; in fortran order the first axis runs fastest and the shape is still
 *      the logical one
 */
#include <inttypes.h>

#include "formats/format.h"
#include "formats/npy.h"

static int npy_probe(const struct dump_head *head)
{
    return head->size >= ND_NPY_MAGIC_SIZE &&
                   memcmp(head->bytes, "\x93NUMPY", ND_NPY_MAGIC_SIZE) == 0
               ? 8 * ND_NPY_MAGIC_SIZE
               : 0;
}

static enum nd_status npy_index(struct dump *dump, size_t file, struct nd_error *err)
{
    struct cursor in = nd_dump_bytes(dump, file);
    struct npy_head head;

    ND_TRY(nd_npy_head_read(&in, dump->arena, &head, err));
    if (head.dtype == ND_DTYPE_NONE)
        return nd_fail_key(err, ND_ERR_UNSUPPORTED, "descr", "a numeric array", "'%s': %s",
                           head.dtype_text, head.trouble);
    if (head.data_size > nd_cursor_left(&in))
        return nd_fail_at(
            err, ND_ERR_MALFORMED, in.size, "the data that the header announces",
            "the end of the file: %" PRIu64 " of %" PRIu64 " bytes are missing",
            head.data_size - nd_cursor_left(&in), head.data_size);
    struct dump_slot slot = nd_npy_slot(&head);
    slot.extent = (struct extent){
        .file = file, .offset = in.at, .size = head.data_size, .raw_size = head.data_size};
    if (nd_cursor_left(&in) > head.data_size)
        slot.note = "trailing_bytes";
    dump->order = ND_ORDER_NAME;
    return nd_dump_add_lone(dump, file, &slot, err);
}

const struct dump_format nd_format_npy = {
    .name = "npy",
    .title = "NumPy array (.npy)",
    .probe = npy_probe,
    .index = npy_index,
};
