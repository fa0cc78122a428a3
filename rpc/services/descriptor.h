/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVICES_DESCRIPTOR_H
#define BOWLINE_RPC_SERVICES_DESCRIPTOR_H

/*
 * A serialized google.protobuf.FileDescriptorProto as far as reflection needs it: what it declares,
 * what it names, and the same without some of its imports. It is read where it lies; nothing of
 * descriptor.proto is generated for that.
 */

#include "base/arena.h"
#include <bowline/slice.h>

/** Messages in messages, at most; protoc takes far fewer. */
#define BOW__DESCRIPTOR_DEPTH 100

/** What bow__descriptor_walk() tells; each returns 0, or a negative errno that ends the walk. */
struct bow__descriptor_visitor {
    /** A full name that the file declares: of a message, field, oneof, enum, value, service,
     * method or extension. Both slices last as long as the arena. */
    int (*symbol)(struct bow_slice full_name, bool is_message, void *user);
    /** A type that it names, as it stands there: ".package.Type". */
    int (*reference)(struct bow_slice type, void *user);
    /** An extension of `extendee`, as it stands there. */
    int (*extension)(struct bow_slice extendee, int32_t number, void *user);
    /** The name of a file that it imports. */
    int (*dependency)(struct bow_slice name, void *user);
};

/**
 * Tell `visitor` what is in the file; members that are NULL are not called. Full names are made in
 * `arena`, if symbols are asked for. Returns 0; what the visitor did; -ENOMEM; -EBADMSG.
 */
int bow__descriptor_walk(struct bow_slice bytes, struct bow__arena *arena,
                         const struct bow__descriptor_visitor *visitor, void *user);

/**
 * Copy the file to `arena` without the imports for which `keeps` says no; what it says of imports
 * by their number (public, weak) goes with them. Returns 0, -ENOMEM or -EBADMSG.
 */
int bow__descriptor_strip(struct bow_slice bytes, struct bow__arena *arena,
                          bool (*keeps)(struct bow_slice name, void *user), void *user,
                          struct bow_slice *ret_bytes);

#endif
