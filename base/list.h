/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_LIST_H
#define BOWLINE_BASE_LIST_H

/*
 * An intrusive doubly linked circular list. The head is a link of its own; a link
 * that is in no list points to itself, so remove() is idempotent.
 */

#include <stdbool.h>
#include <stddef.h>

struct bow__link {
    struct bow__link *next;
    struct bow__link *prev;
};

#define BOW__CONTAINER(pointer, type, member)                                                      \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void bow__list_init(struct bow__link *link)
{
    link->next = link;
    link->prev = link;
}

static inline bool bow__list_is_empty(const struct bow__link *head)
{
    return head->next == head;
}

static inline void bow__list_push_back(struct bow__link *head, struct bow__link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static inline void bow__list_push_front(struct bow__link *head, struct bow__link *link)
{
    bow__list_push_back(head->next, link);
}

static inline void bow__list_remove(struct bow__link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    bow__list_init(link);
}

/** Take the first link out, or NULL when the list is empty. */
static inline struct bow__link *bow__list_pop_front(struct bow__link *head)
{
    struct bow__link *first = head->next;
    if (first == head) {
        return NULL;
    }
    bow__list_remove(first);
    return first;
}

/** Put all links of `from` in front of those of `to`; `from` is empty then. */
static inline void bow__list_move_front(struct bow__link *to, struct bow__link *from)
{
    if (bow__list_is_empty(from)) {
        return;
    }
    from->prev->next = to->next;
    to->next->prev = from->prev;
    to->next = from->next;
    from->next->prev = to;
    bow__list_init(from);
}

/** Append all links of `from` to `to`; `from` is empty then. */
static inline void bow__list_move(struct bow__link *to, struct bow__link *from)
{
    if (bow__list_is_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    bow__list_init(from);
}

#endif
