/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which encodings there are, their states, and the texts of refusals. Knows nothing of how one of
 * them works.
 */

#include "rpc/core/compression/encodings.h"
#include "rpc/core/compression/compress_zlib.h"
#include "rpc/core/compression/compress_zstd.h"

#include <errno.h>
#include <string.h>

static const struct bow__coder *const coders_built[BOW__N_ENCODINGS] = {
    [BOW__ENCODING_IDENTITY] = NULL, /* so that there is one in every build */
#ifdef BOW__HAVE_ZSTD
    [BOW__ENCODING_ZSTD] = &bow__zstd_coder,
#endif
#ifdef BOW__HAVE_ZLIB
    [BOW__ENCODING_GZIP] = &bow__gzip_coder,
    [BOW__ENCODING_DEFLATE] = &bow__deflate_coder,
#endif
};

static const char *const names[BOW__N_ENCODINGS] = {
    [BOW__ENCODING_IDENTITY] = "identity",
    [BOW__ENCODING_ZSTD] = "zstd",
    [BOW__ENCODING_GZIP] = "gzip",
    [BOW__ENCODING_DEFLATE] = "deflate",
};

static const struct bow__coder *coder_of(enum bow__encoding encoding)
{
    return encoding < BOW__N_ENCODINGS ? coders_built[encoding] : NULL;
}

void bow__coders_init(struct bow__coders *coders, struct bow_context *context)
{
    *coders = (struct bow__coders){.context = context};
}

void bow__coders_trim(struct bow__coders *coders)
{
    for (size_t i = 0; i < BOW__N_ENCODINGS; i++) {
        if (coders->encoders[i] != NULL) {
            coders_built[i]->encoder_free(coders->context, coders->encoders[i]);
            coders->encoders[i] = NULL;
        }
        if (coders->decoders[i] != NULL) {
            coders_built[i]->decoder_free(coders->context, coders->decoders[i]);
            coders->decoders[i] = NULL;
        }
    }
}

uint32_t bow__encodings_built(void)
{
    uint32_t set = 1u << BOW__ENCODING_IDENTITY;

    for (unsigned i = 0; i < BOW__N_ENCODINGS; i++) {
        set |= coders_built[i] != NULL ? 1u << i : 0;
    }
    return set;
}

const char *bow__encoding_name(enum bow__encoding encoding)
{
    return encoding < BOW__N_ENCODINGS ? names[encoding] : NULL;
}

void bow__encodings_describe(struct bow__text *text)
{
    bow__text_printf(text, "%s", names[BOW__ENCODING_IDENTITY]);
    for (unsigned i = BOW__ENCODING_IDENTITY + 1; i < BOW__N_ENCODINGS; i++) {
        if (coders_built[i] != NULL) {
            bow__text_printf(text, ",%s", names[i]);
        }
    }
}

enum bow__encoding bow__encoding_of(struct bow_slice name)
{
    for (unsigned i = 0; i < BOW__N_ENCODINGS; i++) {
        bool is_built = (bow__encodings_built() >> i & 1u) != 0;
        if (is_built && strlen(names[i]) == name.len &&
            memcmp(names[i], name.data, name.len) == 0) {
            return (enum bow__encoding)i;
        }
    }
    return BOW__ENCODING_UNKNOWN;
}

uint32_t bow__encodings_of(struct bow_slice list, struct bow_slice *ret_unknown)
{
    struct bow_slice unknown = {NULL, 0};
    uint32_t set = 0;

    while (list.len > 0) {
        const uint8_t *comma = memchr(list.data, ',', list.len);
        size_t len = comma != NULL ? (size_t)(comma - list.data) : list.len;
        struct bow_slice name = bow__text_trim((struct bow_slice){list.data, len});
        enum bow__encoding encoding = bow__encoding_of(name);
        if (encoding != BOW__ENCODING_UNKNOWN) {
            set |= 1u << encoding;
        } else if (unknown.len == 0) {
            unknown = name;
        }
        len += comma != NULL;
        list = (struct bow_slice){list.data + len, list.len - len};
    }
    if (ret_unknown != NULL) {
        *ret_unknown = unknown;
    }
    return set;
}

int bow__deflate(struct bow__coders *coders, enum bow__encoding encoding, int level,
                 struct bow_slice bytes, struct bow__block **ret_block, size_t *ret_len)
{
    const struct bow__coder *coder = coder_of(encoding);

    if (coder == NULL) {
        return -ENOTSUP;
    }
    if (bytes.len < 2) {
        return -ENOBUFS;
    }
    if (coders->encoders[encoding] == NULL) {
        coders->encoders[encoding] = coder->encoder_new(coders->context);
    }
    struct bow__block *block = bow__block_new_to_fill(coders->context, bytes.len - 1);
    if (coders->encoders[encoding] == NULL || block == NULL) {
        bow__block_unref(block);
        return -ENOMEM;
    }
    ssize_t n = coder->encode(coders->encoders[encoding], level, bytes, block->data, bytes.len - 1);
    if (n < 0) {
        bow__block_unref(block);
        return (int)n;
    }
    if ((size_t)n <= block->cap / 2) {
        bow__block_shrink(&block, (size_t)n); /* it may wait for credit for long */
    }
    *ret_block = block;
    *ret_len = (size_t)n;
    return 0;
}

static int explain(int rc, enum bow__encoding encoding, size_t max_bytes, const char *what,
                   struct bow__text *reason)
{
    switch (rc) {
    case -EMSGSIZE:
        bow__text_printf(reason, "it inflates to more than max_message_bytes (%zu)", max_bytes);
        break;
    case -ENOMEM:
        bow__text_printf(reason, "no memory to inflate it");
        break;
    default:
        bow__text_printf(reason, "it is no valid %s: %s", names[encoding], what);
        break;
    }
    return rc;
}

static int refuse_encoding(enum bow__encoding encoding, struct bow__text *reason)
{
    if (encoding == BOW__ENCODING_IDENTITY) {
        bow__text_printf(reason, "it is marked compressed, and no encoding was named");
        return -ENOTSUP;
    }
    bow__text_printf(reason, "its encoding is not supported (supported: ");
    bow__encodings_describe(reason);
    bow__text_printf(reason, ")");
    return -ENOTSUP;
}

int bow__inflate(struct bow__coders *coders, enum bow__encoding encoding, struct bow_slice bytes,
                 size_t max_bytes, struct bow__block **ret_block, size_t *ret_len,
                 struct bow__text *reason)
{
    const struct bow__coder *coder = coder_of(encoding);
    struct bow__inflated out = {.context = coders->context,
                                .max_bytes = max_bytes < SIZE_MAX ? max_bytes + 1 : SIZE_MAX};
    const char *what = "";

    if (coder == NULL) {
        return refuse_encoding(encoding, reason);
    }
    if (coders->decoders[encoding] == NULL) {
        coders->decoders[encoding] = coder->decoder_new(coders->context);
    }
    if (coders->decoders[encoding] == NULL) {
        return explain(-ENOMEM, encoding, max_bytes, what, reason);
    }
    int rc = coder->decode(coders->decoders[encoding], bytes, &out, &what);
    if (rc == 0 && out.len > max_bytes) {
        rc = -EMSGSIZE;
    }
    if (rc < 0 || out.len == 0) {
        out.block = bow__block_unref(out.block);
    }
    *ret_len = out.len;
    if (rc < 0) {
        return explain(rc, encoding, max_bytes, what, reason);
    }
    *ret_block = out.block;
    return 0;
}
