/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_LIMITS_H
#define BOWLINE_LIMITS_H

/*
 * Whatever a peer can make grow has its limit here, with the attack it answers.
 * Values are defaults; where an option of server or client changes one, its
 * comment names it.
 */

/** Bytes of one message, compressed or not. Answers a length that claims gigabytes. Option:
 * max_message_bytes. */
#define BOW_LIMIT_MESSAGE_BYTES ((size_t)4 << 20)

/** Bytes of one header block that is received: path and metadata of a request, metadata and texts
 * of an answer. Answers header bombs. Option: max_header_bytes. */
#define BOW_LIMIT_HEADER_BYTES ((size_t)16 << 10)

/** The least max_header_bytes that an option can name: what the protocols say themselves fits. */
#define BOW_LIMIT_HEADER_BYTES_MIN ((size_t)2 << 10)

/** The greatest, and what one header block has at most that is sent, whatever its peer takes.
 * Answers metadata that grows with the calls that hold it. */
#define BOW_LIMIT_HEADER_BYTES_MAX ((size_t)128 << 10)

/** Payload bytes of one frame that we accept. Answers claims that allocate. */
#define BOW_LIMIT_FRAME_BYTES ((size_t)256 << 10)

/** Calls in flight on one connection. Answers a flood of calls. Option: max_calls. */
#define BOW_LIMIT_CALLS_IN_FLIGHT 1024u

/** Calls in flight on one connection whose client cannot know of a lower max_calls yet (HTTP/2: it
 * has not acknowledged SETTINGS); those above max_calls wait before their handlers. Answers a
 * client that begins calls without end before it has heard of the limit. */
#define BOW_LIMIT_EARLY_CALLS 1024u

/** Calls above max_calls that come all the same, per second and connection (HTTP/2): each is
 * refused. Answers a peer that pays no heed to the limit. */
#define BOW_LIMIT_REFUSED_CALLS_PER_SECOND 10000u

/** Paths that one connection may bind to numbers. Answers tables grown by invented methods. */
#define BOW_LIMIT_BOUND_METHODS 64u

/** Bytes of a path that is bound to a number; longer ones are sent whole. Answers a connection that
 * is left alone with its table full of paths as long as header blocks. */
#define BOW_LIMIT_BOUND_PATH_BYTES ((size_t)1 << 10)

/** Arena bytes of one call; while a message is decoded 64 × its size + 64 KiB, if that is less; 3 ×
 * its size + 64 KiB, if that is more, for whoever raises max_message_bytes. Answers amplification
 * while decoding. */
#define BOW_LIMIT_CALL_ARENA_BYTES ((size_t)64 << 20)

/** How many times its length of a text of JSON is looked through for an "@type" that stands behind
 * the rest of its Any. Answers Anys in Anys with theirs last: each is looked through by all around
 * it. */
#define BOW_LIMIT_JSON_TYPE_SEARCHES 8u

/** Levels of nested messages. Answers exhaustion of the stack. */
#define BOW_LIMIT_MESSAGE_DEPTH 100u

/** Bytes of one status message that we send or keep. */
#define BOW_LIMIT_STATUS_MESSAGE_BYTES ((size_t)4 << 10)

/** CANCEL frames (or RST_STREAM, unless the call has ended) per second and connection, without
 * those of calls whose deadline has passed, or does so within 10 ms and half of their time. Answers
 * rapid reset (CVE-2023-44487). */
#define BOW_LIMIT_CANCELS_PER_SECOND 1000u

/** PING frames per second and connection, without answers to our own, and without one for each
 * frame of a call, with bytes or an end, that went either way before: estimators of bandwidth ask
 * so, and as many as this limit are excused ahead at most. Answers a ping flood. */
#define BOW_LIMIT_PINGS_PER_SECOND 100u

/** SETTINGS frames per second and connection (HTTP/2). Answers a settings flood. */
#define BOW_LIMIT_SETTINGS_PER_SECOND 100u

/** GOAWAY frames per second and connection (HTTP/2). Answers a peer that has all calls looked
 * through with each. */
#define BOW_LIMIT_GOAWAYS_PER_SECOND 100u

/** Frames for calls that have ended, per second and connection, without what the peer may have sent
 * before it heard of that: as many bytes of messages as it had credit for, and a few other frames
 * for each such call. Answers work for nobody. */
#define BOW_LIMIT_LATE_FRAMES_PER_SECOND 10000u

/** Frames of types 128–255 and empty frames per second and connection. Answers busy-work floods. */
#define BOW_LIMIT_EMPTY_FRAMES_PER_SECOND 10000u

/** Messages of one connection that cannot be decoded, or inflate to more than max_message_bytes, in
 * a second. Answers work that is asked for in vain; above it the connection ends. */
#define BOW_LIMIT_UNDECODABLE_PER_SECOND 1000u

/** Bytes that a message may be inflated and decoded to for each of its own. Nothing is refused
 * above it, but see BOW_LIMIT_EXPANDED_BYTES_PER_SECOND. */
#define BOW_LIMIT_EXPANSION 64u

/** What the messages of one connection are inflated and decoded to in a second beyond
 * BOW_LIMIT_EXPANSION; those that cannot be decoded count 16 times. Answers bytes of which few cost
 * much time. Above it the connection waits. */
#define BOW_LIMIT_EXPANDED_BYTES_PER_SECOND ((size_t)256 << 20)

/** What messages of one connection that cannot be decoded are inflated and decoded to, beyond
 * BOW_LIMIT_EXPANSION, less BOW_LIMIT_VAIN_BYTES_PER_SECOND. Answers few bytes that cost much time
 * for nothing; above it the connection ends. */
#define BOW_LIMIT_VAIN_BYTES ((size_t)96 << 20)

/** So much of that is forgiven in a second. */
#define BOW_LIMIT_VAIN_BYTES_PER_SECOND ((size_t)1 << 20)

/** Calls that one connection begins or ends in a turn of the loop. One counts again that is refused
 * as it begins, or whose request ends in a frame of its own, as over HTTP/2; there a header block
 * counts half. Answers reads that are dense with calls; above it, and above the next two, the
 * connection waits until the others of its loop have had their turn, and goes on with the bytes
 * that it has. What is below each uses up its part of the same turn. */
#define BOW_LIMIT_CALLS_PER_TURN 256u

/** Frames of one connection in a turn of the loop. Answers frames of a byte. */
#define BOW_LIMIT_FRAMES_PER_TURN 2048u

/** Entries of metadata of one connection in a turn of the loop; those fields that are HTTP/2's own
 * count half. Answers header blocks of which a byte makes an entry. */
#define BOW_LIMIT_FIELDS_PER_TURN 1024u

/** Output that a connection queues for control frames before it stops reading. Answers a peer that
 * asks and never reads. */
#define BOW_LIMIT_CONTROL_BYTES ((size_t)64 << 10)

/** Bytes of large blocks, beside those in use, that a context without an allocator of its own lets
 * wait for the next large messages, with their pages; or eight messages of the largest
 * max_message_bytes in it, if that is more. They go when nobody wanted them for a second, and
 * before anything in use passes the context's max_bytes. Answers a burst that would leave the
 * memory it took for ever. */
#define BOW_LIMIT_SPARE_BYTES ((size_t)64 << 20)

/** Freed bytes that malloc may keep in the process: so many and more that nobody wanted for half a
 * second are handed back by malloc_trim(), and those that would take the process above max_bytes
 * at once, if they are a sixteenth of it, too. Answers a burst of small blocks that would leave the
 * memory it took for ever. Not with an allocator of the user's. Option: keep_freed of the context.
 */
#define BOW_LIMIT_KEPT_BYTES ((size_t)8 << 20)

/** Bytes of one channel that its handlers have not consumed yet. Answers a message without end.
 * They are held in memory that grows with what has arrived, not with what was announced. */
#define BOW_LIMIT_UNREAD_BYTES ((size_t)64 << 20)

/** Bytes on their way in one direction of an inproc connection. Answers a writer that is faster
 * than its reader. */
#define BOW_LIMIT_INPROC_BYTES ((size_t)128 << 10)

/** Message bytes that one connection holds: arrived and not yet read by the call, or announced by
 * messages that have begun. Answers many large messages begun at once. Of a stream they are its
 * window, and one message; over HTTP/2 the windows of its streams bound a connection. */
#define BOW_LIMIT_BYTES_IN_FLIGHT ((size_t)64 << 20)

/** What all connections of one server hold together: messages that have begun, with all that they
 * announced, or wait to be read; and calls in progress: 4 KiB each, streams, and what metadata and
 * request take beside, also while nobody waits for them any more. What is answered or read when
 * it comes is not counted. Answers many connections of which each is below its own limits. Each
 * loop has an equal share. Option: max_bytes_in_flight. */
#define BOW_LIMIT_SERVER_BYTES_IN_FLIGHT ((size_t)1 << 30)

/** Bytes of replies that wait for the peer of one connection, and are to be expected of the calls
 * that its handlers have, from which on no further call of it is begun. Answers a peer that asks
 * for much and takes little. What handlers have answered all the same is sent, however much it is.
 */
#define BOW_LIMIT_QUEUED_REPLY_BYTES ((size_t)64 << 20)

/** Memory of the calls of one connection that wait before their handlers, since too much waits to
 * be sent to it, or handlers have max_calls of it: 4 KiB each, and what metadata and request take
 * decoded. Answers a peer that asks on and on and takes nothing. Above it calls are refused. */
#define BOW_LIMIT_WAITING_REQUEST_BYTES ((size_t)64 << 20)

/** Memory of what waits to be sent to all peers of one server: messages with what keeps their
 * place, and output that the sockets have not taken. Answers many peers that ask and take nothing,
 * of which each is below its own limit. Each loop has an equal share. From three quarters of it on
 * a connection that has more than its even part begins no further call, and is ended when its peer
 * takes nothing for BOW_LIMIT_UNTAKEN_NS. Option: max_queued_reply_bytes. */
#define BOW_LIMIT_SERVER_QUEUED_REPLY_BYTES ((size_t)256 << 20)

/** Time in which a peer takes nothing of what waits for it, of which it has more than its even part
 * while the server is short of max_queued_reply_bytes. Answers peers that hold what others need. */
#define BOW_LIMIT_UNTAKEN_NS (UINT64_C(5) * 1000000000u)

/** Credit of one stream that a fast reader over a long path made grow. Answers a promise without
 * bound. */
#define BOW_LIMIT_STREAM_WINDOW_BYTES ((size_t)16 << 20)

/** The same of a connection, all its streams together. */
#define BOW_LIMIT_CONNECTION_WINDOW_BYTES ((size_t)32 << 20)

/** What the windows of a connection's streams may have grown by, all together. Answers a peer that
 * makes many grow and then fills them while nobody reads. */
#define BOW_LIMIT_GROWN_WINDOWS_BYTES ((size_t)32 << 20)

/** Connections of one server. Option: max_connections. */
#define BOW_LIMIT_CONNECTIONS 10000u

/** Time from accept to the first frame. Answers silent and slow openers. Option:
 * first_frame_timeout_ns. */
#define BOW_LIMIT_FIRST_FRAME_NS (UINT64_C(10) * 1000000000u)

/** Bytes of a PROXY header of version 2 with its extensions. Answers a claim of 64 KiB. Option:
 * max_header_bytes. */
#define BOW_LIMIT_PROXY_HEADER_BYTES ((size_t)2 << 10)

/** Time in which the peer takes none of the bytes that wait for it. Answers peers that ask and
 * never read, and those that are gone while we do not read for that reason. Option:
 * write_timeout_ns. */
#define BOW_LIMIT_WRITE_NS (UINT64_C(60) * 1000000000u)

/** Time for the TLS handshake. Answers silent and slow openers. Option: handshake_timeout_ns. */
#define BOW_LIMIT_TLS_HANDSHAKE_NS (UINT64_C(10) * 1000000000u)

/** Bytes of a TLS handshake that we read, certificates included. Answers chains without end. */
#define BOW_LIMIT_TLS_HANDSHAKE_BYTES ((size_t)128 << 10)

/** Bytes that wait to be sent when TLS itself answers the peer (key updates). Answers a peer that
 * asks and never reads. */
#define BOW_LIMIT_TLS_ANSWER_BYTES ((size_t)256 << 10)

/** Servers whose sessions the clients of one TLS context may take up again. */
#define BOW_LIMIT_TLS_SESSIONS 64u

/** Calls that wait for a thread of the executor that runs their handlers. Answers work that comes
 * faster than it is done. Option: max_waiting_calls. */
#define BOW_LIMIT_WAITING_CALLS 1024u

/** Calls in progress on a server, and of a method: there is no default, for only its owner knows
 * what a server can do. Answers more work than it can do, which would all be late. Options:
 * max_server_calls; bow_server_limit_calls(). */

/** In percent of the context's max_bytes: what may be in use before new calls are refused. Answers
 * calls that take the memory which those in progress need to end. */
#define BOW_LIMIT_CEILING_PERCENT 90u

/** What a client is asked to wait whose call was refused because of a limit, but one of its own
 * connection, which is for 100 ms. Answers clients that come back at once. Option: retry_after_ns.
 */
#define BOW_LIMIT_RETRY_AFTER_NS (UINT64_C(1) * 1000000000u)

/** How long a peer may take to answer GOAWAY before it gets the last word, and has called nothing
 * meanwhile, where somebody waits for its end or it has said that it reads only while it calls.
 * Answers connections that are never given up, because nobody attends to them or reads. */
#define BOW_LIMIT_LEAVE_NS (UINT64_C(1) * 1000000000u)

/** The same of any other peer: it may be busy, and what it calls before it has read the GOAWAY is
 * served. */
#define BOW_LIMIT_LEAVE_BUSY_NS (UINT64_C(10) * 1000000000u)

/** The longest time between two PINGs that a peer may ask for (native; its min_ping_interval_us);
 * what is above is taken for this. Answers peers that are gone and had forbidden to ask. */
#define BOW_LIMIT_PING_INTERVAL_NS (UINT64_C(60) * 1000000000u)

/** Time without a call after which a server ends the connection of a client that has said that
 * nobody attends to it between calls, for such a one is not asked whether it lives. Answers clients
 * that say so and are gone. Option: idle_timeout_ns, where it is shorter. */
#define BOW_LIMIT_UNATTENDED_NS (UINT64_C(1800) * 1000000000u)

/** Time without a call after which a client closes a connection. Answers descriptors that are held
 * for nothing. Option: idle_timeout_ns, which servers have too, without a default. */
#define BOW_LIMIT_CLIENT_IDLE_NS (UINT64_C(1800) * 1000000000u)

/** Calls that a client queues on one loop while it has no connection that takes them. Option:
 * max_queued_calls. */
#define BOW_LIMIT_QUEUED_CALLS 1024u

/** Methods that a client counts by name on one loop; the others together. Answers a program that
 * makes methods up. */
#define BOW_LIMIT_CLIENT_METHODS 256u

/** Bytes of the calls that a client queues, their requests above all; the first may be larger.
 * Answers a program whose server is away. Option: max_queued_bytes. */
#define BOW_LIMIT_QUEUED_BYTES ((size_t)64 << 20)

/** Attempts of a call that is tried again by a policy, with the first (<bowline/retry.h>); of what
 * asks for more there are so many. Answers servers that are kept sick by those who try again, as do
 * the next six. */
#define BOW_LIMIT_RETRY_ATTEMPTS 5u

/** Bytes of a request, or of all messages that a stream has sent, that are kept for another
 * attempt; what is larger is sent once. */
#define BOW_LIMIT_RETRY_REQUEST_BYTES ((size_t)64 << 10)

/** Tokens of a client's budget on each loop, of which an attempt that fails takes one: at half of
 * them or less nothing is tried again. Option: budget_tokens. */
#define BOW_LIMIT_RETRY_TOKENS 10u

/** Hundredths of a token that a call which succeeds puts back. Option: budget_percent. */
#define BOW_LIMIT_RETRY_PERCENT 10u

/** Tokens that a minute puts back. Option: budget_per_minute. */
#define BOW_LIMIT_RETRY_PER_MINUTE 6u

/** How many of a loop's calls, in percent, may be tried again, whatever the tokens allow; */
#define BOW_LIMIT_RETRY_SHARE_PERCENT 20u
/** and how many above that at once. */
#define BOW_LIMIT_RETRY_BURST 5u

/** Bytes of a service config, and names of methods in it, or policies of a program's own. Answers a
 * resolver that says what no servers need. */
#define BOW_LIMIT_SERVICE_CONFIG_BYTES ((size_t)256 << 10)
#define BOW_LIMIT_METHOD_CONFIGS 4096u

/** Addresses of a client's `list:` target: as many connections on each of its loops. */
#define BOW_LIMIT_LIST_ADDRESSES 64u

/** Addresses that a client uses of a name that a resolver knows (<bowline/resolver.h>): as many
 * connections on each of its loops. Of more the first in the order of their bytes are used. Answers
 * a directory or a name server that names the world. */
#define BOW_LIMIT_RESOLVED_ADDRESSES 1024u

/** What calls may take that are on an address which its name has no more; then they end with
 * UNAVAILABLE. At once for the oldest of more than BOW_LIMIT_RESOLVED_ADDRESSES such addresses.
 * Answers names that change all the time, under calls that do not end. */
#define BOW_LIMIT_RESOLVED_DRAIN_NS (UINT64_C(60) * 1000000000u)

/** The least time between two hints to a resolver that what it knows may be old. Answers servers
 * that fail or go all the time. */
#define BOW_LIMIT_RESOLVER_REFRESH_NS (UINT64_C(1) * 1000000000u)

/** What a DNS server has to answer a question in, and how often each is asked; the second time it
 * has twice as long. Answers servers that do not. */
#define BOW_LIMIT_DNS_TRY_NS (UINT64_C(2) * 1000000000u)
#define BOW_LIMIT_DNS_TRIES 2

/** All that one look-up of a client's name may take, whatever it consists of. Answers servers that
 * answer with further questions. */
#define BOW_LIMIT_DNS_LOOKUP_NS (UINT64_C(10) * 1000000000u)

/** The time after which a name is looked up again, whatever its TTL: at least, at most. Answers a
 * TTL of none, or of years. Option: dns_min_ttl_ns. */
#define BOW_LIMIT_DNS_TTL_MIN_NS (UINT64_C(5) * 1000000000u)
#define BOW_LIMIT_DNS_TTL_MAX_NS (UINT64_C(3600) * 1000000000u)

/** Targets of a name's SRV records that are looked up. Answers an answer that asks for thousands.
 */
#define BOW_LIMIT_DNS_SRV_TARGETS 64u

/** Bytes of a file of addresses (file:///PATH). Answers one that is none. */
#define BOW_LIMIT_ADDRESS_FILE_BYTES ((size_t)1 << 20)

/** Connections of a client to one address, on each of its loops. Option:
 * max_connections_per_address. */
#define BOW_LIMIT_CONNECTIONS_PER_ADDRESS 64u

/** Time without a call after which a client closes one of several connections to an address, but
 * the first. Answers descriptors that a burst leaves. */
#define BOW_LIMIT_FURTHER_IDLE_NS (UINT64_C(10) * 1000000000u)

/** Names that a context looks up at once, each on a thread; more wait for one of them, and equal
 * ones are one. Answers name servers that do not. */
#define BOW_LIMIT_LOOKUPS 16u

/** Calls, and the next connections, of each loop that a dump shows (<bowline/inspect.h>). Answers a
 * server whose calls are so many that to look at them is what holds it up. Options: max_calls,
 * max_connections of the dump. */
#define BOW_LIMIT_DUMP_CALLS 1000u
#define BOW_LIMIT_DUMP_CONNECTIONS 1000u

/** Connections of the operations listener (options.operations_listen); more are closed at once.
 * Answers a scraper that never closes, and whoever would take descriptors that calls need. */
#define BOW_LIMIT_OPERATIONS_CONNECTIONS 32u

/** Time for a request to the operations listener, from its first byte (of a connection's first from
 * when it was accepted) to its last. Answers headers that come a byte at a time. */
#define BOW_LIMIT_OPERATIONS_REQUEST_NS (UINT64_C(10) * 1000000000u)

/** Time between two requests on one connection. Answers connections that are held for nothing. */
#define BOW_LIMIT_OPERATIONS_IDLE_NS (UINT64_C(75) * 1000000000u)

/** Time for an answer of the operations listener to be taken. Answers peers that ask and never
 * read. */
#define BOW_LIMIT_OPERATIONS_SEND_NS (UINT64_C(30) * 1000000000u)

/** Bytes of one answer of the operations listener; above it says so instead. Answers an answer that
 * takes the memory which calls need. */
#define BOW_LIMIT_OPERATIONS_BODY_BYTES ((size_t)16 << 20)

/** Bytes of options.web_page. Answers pages that are asked for and not read: each that waits counts
 * as a queued reply. */
#define BOW_LIMIT_WEB_PAGE_BYTES ((size_t)256 << 10)

/** Bytes of the line that begins a request of HTTP/1.1. Answers a target without end. */
#define BOW_LIMIT_HTTP1_REQUEST_LINE_BYTES ((size_t)8 << 10)

/** From the first byte of a head of HTTP/1.1 to its last; without a byte of a body, but where a
 * client sends a stream; and for all that is left of a body when its call has ended. Answers
 * clients that send a request byte by byte to keep a connection (the call itself ends by
 * max_deadline_ns). */
#define BOW_LIMIT_HTTP1_REQUEST_NS (UINT64_C(10) * 1000000000u)

/** Fields of a request of HTTP/1.1, and of its trailers; binary ones that are joined with commas
 * count each. Answers heads of a great many small ones, each of which is compared. */
#define BOW_LIMIT_HTTP1_FIELDS 100u

/** Bytes of the extensions of a body's chunks in HTTP/1.1, all together; they are not read. Answers
 * a body that is mostly none. */
#define BOW_LIMIT_HTTP1_CHUNK_EXTENSION_BYTES ((size_t)4 << 10)

/** Members of a call's tracestate; one with more is left out, as the W3C's recommendation has it.
 * Answers lists that grow from hop to hop. */
#define BOW_LIMIT_TRACESTATE_MEMBERS 32u

/** Bytes of a tracestate that are kept and sent on: members beyond that are left out, those of more
 * than 128 bytes first. Answers the same. */
#define BOW_LIMIT_TRACESTATE_BYTES ((size_t)512)

/** Bytes of all files of one schema (<bowline/schema.h>), serialized. Answers a server whose
 * reflection goes on without end. */
#define BOW_LIMIT_SCHEMA_BYTES ((size_t)16 << 20)

/** Memory of one schema: the files as they are, decoded, and what is made of them. Answers
 * declarations of few bytes of which each takes many. */
#define BOW_LIMIT_SCHEMA_MEMORY_BYTES ((size_t)256 << 20)

/** Bytes of a name in a schema, with all that it is declared in. Answers long names in each other,
 * of which each is as long as all those around it. */
#define BOW_LIMIT_SCHEMA_NAME_BYTES ((size_t)1 << 10)

/** Fields of one message of a schema. Answers a type whose empty message takes megabytes. */
#define BOW_LIMIT_SCHEMA_FIELDS 65536u

/** Servers of a service that are told of (<bowline/etcd.h>): the first in the order of their keys.
 * Answers a prefix that somebody fills. */
#define BOW_LIMIT_ETCD_SERVERS 4096u

/** Bytes of a server's key, and of its value, in etcd. Answers values that are as large as etcd
 * lets them be. */
#define BOW_LIMIT_ETCD_VALUE_BYTES ((size_t)8 << 10)

/** How long a server that hands its sockets over waits for the new process to serve. Answers one
 * that has them and hangs, while no other can have them; above it the old one goes on. */
#define BOW_LIMIT_HAND_OVER_NS (UINT64_C(60) * 1000000000u)

/** How long a new server waits for a word of the old one, and blocks. Answers one that is held. */
#define BOW_LIMIT_TAKE_OVER_NS (UINT64_C(5) * 1000000000u)

/** Sockets that go from one server to the other. Answers a process that never comes to an end. */
#define BOW_LIMIT_HAND_OVER_SOCKETS 4096u

#endif
