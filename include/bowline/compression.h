/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_COMPRESSION_H
#define BOWLINE_COMPRESSION_H

/*
 * Whether a side compresses the messages that it sends. What comes compressed is always taken, in
 * every encoding that the library was built with (zstd, gzip, deflate), and never inflated beyond
 * max_message_bytes; bow_call_request_was_compressed(), bow_result_reply_was_compressed() and
 * bow_stream_message_was_compressed() tell whether it did.
 *
 * Do not compress a message that holds a secret beside something that its reader's enemy may
 * choose: how long it gets tells about the secret.
 */

#ifdef __cplusplus
extern "C" {
#endif

/** Whether messages are compressed; of a server, a client, or one call of a client. */
enum bow_compression {
    BOW_COMPRESSION_DEFAULT = 0, /* of a call: as its client; of a server or a client: off */
    BOW_COMPRESSION_OFF = 1,
    /** In the best encoding that the other side says it takes: zstd, else gzip, else deflate, else
     * not at all. What is smaller than the threshold, or would not shrink, goes as it is. */
    BOW_COMPRESSION_AUTO = 2,
    BOW_COMPRESSION_ON = 3, /* the same, whatever its size: only what would not shrink goes as is */
};

/** The threshold where none is given. */
#define BOW_COMPRESSION_THRESHOLD_BYTES ((size_t)1024)

#ifdef __cplusplus
}
#endif
#endif
