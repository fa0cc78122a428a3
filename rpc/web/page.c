/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The document at "/", and how strictly browsers are asked to take it. */

#include "rpc/web/page.h"
#include "base/alloc.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* The page's own script and style, its own server, and nothing of anybody else's. */
#define OWN_POLICY                                                                                 \
    "default-src 'self' 'unsafe-inline' data:; base-uri 'none'; form-action 'none'; "              \
    "frame-ancestors 'none'"

/* What would end the field, and begin another. */
static bool is_line(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            return false;
        }
    }
    return true;
}

int bow__web_page_check(struct bow_slice bytes, const char *policy, struct bow__text *reason)
{
    if (bytes.len > BOW_LIMIT_WEB_PAGE_BYTES) {
        bow__text_printf(reason,
                         "options.web_page has %zu bytes, more than "
                         "BOW_LIMIT_WEB_PAGE_BYTES (%zu): have it load the rest from elsewhere",
                         bytes.len, BOW_LIMIT_WEB_PAGE_BYTES);
        return -EINVAL;
    }
    if (policy != NULL && bytes.len == 0) {
        bow__text_printf(reason, "options.web_page_policy is set, and options.web_page is not");
        return -EINVAL;
    }
    if (policy != NULL && !is_line(policy)) {
        bow__text_printf(reason, "options.web_page_policy is no line of printable ASCII");
        return -EINVAL;
    }
    return 0;
}

int bow__web_page_new(struct bow_context *context, struct bow_slice bytes, const char *policy,
                      struct bow__web_page **ret_page)
{
    const char *text = policy != NULL ? policy : OWN_POLICY;
    size_t size = sizeof(struct bow__web_page) + strlen(text) + 1;

    if (bytes.len == 0) {
        *ret_page = NULL;
        return 0;
    }
    struct bow__web_page *page = bow__alloc(context, size);
    if (page == NULL) {
        return -ENOMEM;
    }
    struct bow__block *block = bow__block_new_to_fill(context, bytes.len);
    if (block == NULL) {
        bow__free(context, page, size);
        return -ENOMEM;
    }
    memcpy(block->data, bytes.data, bytes.len);
    page->context = context;
    page->size = size;
    page->block = block;
    page->n_bytes = bytes.len;
    memcpy(page->policy, text, strlen(text) + 1);
    *ret_page = page;
    return 0;
}

void bow__web_page_free(struct bow__web_page *page)
{
    if (page != NULL) {
        bow__block_unref(page->block);
        bow__free(page->context, page, page->size);
    }
}

bool bow__web_page_is_at(const struct bow__web_page *page, struct bow_slice path)
{
    return page != NULL && path.len == 1 && path.data[0] == '/';
}

void bow__web_page_describe(const struct bow__web_page *page, struct bow__web_fields *fields,
                            struct bow__arena *arena)
{
    const struct {
        const char *name;
        const char *value;
    } head[] = {
        {"content-type", "text/html; charset=utf-8"},
        {"content-security-policy", page->policy},
        {"cache-control", "no-cache"}, /* a newer server may have a newer one */
        {"referrer-policy", "no-referrer"},
        {"x-content-type-options", "nosniff"},
    };

    for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        bow__web_fields_add(fields, arena, head[i].name, bow__web_text(head[i].value));
    }
}
