/* SPDX-License-Identifier: 0BSD */
/* Owns the keys that a page begins with and ends before. Knows nothing of calls. */

#include "etcd_pages.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In etcd's terms one byte of 0: the least key there can be, and as an end the end of all. */
static uint8_t zero[1];

/* The first key behind all that begin with the prefix: its last byte, one higher. */
static ProtobufCBinaryData end_of(struct etcd_pages *pages)
{
    size_t n = pages->n_prefix;

    while (n > 0 && pages->prefix[n - 1] == 0xff) {
        n--;
    }
    if (n == 0) {
        return (ProtobufCBinaryData){sizeof(zero), zero};
    }
    memcpy(pages->end, pages->prefix, n);
    pages->end[n - 1]++;
    return (ProtobufCBinaryData){n, pages->end};
}

int etcd_pages_init(struct etcd_pages *pages, const char *prefix, int64_t limit)
{
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;

    *pages = (struct etcd_pages){.request = request, .n_prefix = strlen(prefix)};
    pages->prefix = malloc(pages->n_prefix + 1);
    pages->end = malloc(pages->n_prefix + 1);
    if (pages->prefix == NULL || pages->end == NULL) {
        etcd_pages_fini(pages);
        return -ENOMEM;
    }
    memcpy(pages->prefix, prefix, pages->n_prefix);
    pages->request.limit = limit;
    pages->request.range_end = end_of(pages);
    etcd_pages_rewind(pages);
    return 0;
}

void etcd_pages_rewind(struct etcd_pages *pages)
{
    pages->request.revision = 0;
    pages->request.key = (ProtobufCBinaryData){pages->n_prefix, pages->prefix};
    if (pages->n_prefix == 0) {
        pages->request.key = (ProtobufCBinaryData){sizeof(zero), zero};
    }
}

/* The next page begins with the least key that can follow the last one: it, and a byte of 0. */
static int begin_behind(struct etcd_pages *pages, const ProtobufCBinaryData *last)
{
    uint8_t *key = malloc(last->len + 1);

    if (key == NULL) {
        return -ENOMEM;
    }
    memcpy(key, last->data, last->len);
    key[last->len] = 0;
    free(pages->key);
    pages->key = key;
    pages->request.key = (ProtobufCBinaryData){last->len + 1, key};
    return 1;
}

int etcd_pages_turn(struct etcd_pages *pages, const Etcdserverpb__RangeResponse *page)
{
    if (page->header == NULL || (page->more && page->n_kvs == 0)) {
        return -EBADMSG;
    }
    if (pages->request.revision == 0) { /* later pages are asked for at the first one's */
        pages->request.revision = page->header->revision;
    }
    return page->more ? begin_behind(pages, &page->kvs[page->n_kvs - 1]->key) : 0;
}

int64_t etcd_pages_revision(const struct etcd_pages *pages)
{
    return pages->request.revision;
}

void etcd_pages_fini(struct etcd_pages *pages)
{
    free(pages->prefix);
    free(pages->end);
    free(pages->key);
    pages->prefix = pages->end = pages->key = NULL;
}
