/* SPDX-License-Identifier: 0BSD */
/* Owns how the calls of etcd.KV are asked. Knows nothing of loops. */

#include "etcd_kv.h"
#include "etcd_pages.h"

/* A call that the server wants a token for was not done: with one it is done now. */
static const ProtobufCMessage *call(struct etcd *etcd, const struct bow_method *method,
                                    const ProtobufCMessage *request, struct bow_result *ret_result)
{
    const ProtobufCMessage *reply =
        bow_client_call(etcd->client, method, request, NULL, ret_result);

    if (reply != NULL || etcd_remedy(etcd, &ret_result->status) != ETCD_LOG_IN) {
        return reply;
    }
    bow_result_fini(ret_result);
    if (!etcd_login(etcd, ret_result)) {
        return NULL;
    }
    bow_result_fini(ret_result);
    return bow_client_call(etcd->client, method, request, NULL, ret_result);
}

const Etcdserverpb__PutResponse *etcd_put(struct etcd *etcd, const char *key, const char *value,
                                          int64_t lease, struct bow_result *ret_result)
{
    Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;

    request.key = etcd_bytes(key);
    request.value = etcd_bytes(value);
    request.lease = lease;
    return (const Etcdserverpb__PutResponse *)call(etcd, etcdserverpb__kv__put__method(),
                                                   &request.base, ret_result);
}

const Etcdserverpb__RangeResponse *etcd_get(struct etcd *etcd, const char *key,
                                            struct bow_result *ret_result)
{
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;

    request.key = etcd_bytes(key);
    return (const Etcdserverpb__RangeResponse *)call(etcd, etcdserverpb__kv__range__method(),
                                                     &request.base, ret_result);
}

const Etcdserverpb__DeleteRangeResponse *etcd_delete(struct etcd *etcd, const char *key,
                                                     struct bow_result *ret_result)
{
    Etcdserverpb__DeleteRangeRequest request = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;

    request.key = etcd_bytes(key);
    return (const Etcdserverpb__DeleteRangeResponse *)call(
        etcd, etcdserverpb__kv__delete_range__method(), &request.base, ret_result);
}

const Etcdserverpb__CompactionResponse *etcd_compact(struct etcd *etcd, int64_t revision,
                                                     struct bow_result *ret_result)
{
    Etcdserverpb__CompactionRequest request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;

    request.revision = revision;
    return (const Etcdserverpb__CompactionResponse *)call(etcd, etcdserverpb__kv__compact__method(),
                                                          &request.base, ret_result);
}

const Etcdserverpb__TxnResponse *etcd_put_if(struct etcd *etcd, const char *key, const char *value,
                                             int64_t revision, struct bow_result *ret_result)
{
    Etcdserverpb__Compare compare = ETCDSERVERPB__COMPARE__INIT;
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    Etcdserverpb__RangeRequest get = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RequestOp success = ETCDSERVERPB__REQUEST_OP__INIT;
    Etcdserverpb__RequestOp failure = ETCDSERVERPB__REQUEST_OP__INIT;
    Etcdserverpb__TxnRequest request = ETCDSERVERPB__TXN_REQUEST__INIT;

    compare.result = ETCDSERVERPB__COMPARE__COMPARE_RESULT__EQUAL;
    compare.key = etcd_bytes(key);
    if (revision == 0) { /* a key that there is not was created at 0 */
        compare.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__CREATE;
        compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_CREATE_REVISION;
        compare.create_revision = 0;
    } else {
        compare.target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD;
        compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
        compare.mod_revision = revision;
    }
    put.key = etcd_bytes(key);
    put.value = etcd_bytes(value);
    success.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
    success.request_put = &put;
    get.key = etcd_bytes(key);
    failure.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
    failure.request_range = &get;
    request.n_compare = 1;
    request.compare = (Etcdserverpb__Compare *[]){&compare};
    request.n_success = 1;
    request.success = (Etcdserverpb__RequestOp *[]){&success};
    request.n_failure = 1;
    request.failure = (Etcdserverpb__RequestOp *[]){&failure};
    return (const Etcdserverpb__TxnResponse *)call(etcd, etcdserverpb__kv__txn__method(),
                                                   &request.base, ret_result);
}

bool etcd_range(struct etcd *etcd, const char *prefix, int64_t limit, etcd_page_fn fn, void *user,
                struct bow_result *ret_result)
{
    struct etcd_pages pages;
    int more = etcd_pages_init(&pages, prefix, limit) < 0 ? -1 : 1;

    while (more > 0) {
        bow_result_fini(ret_result);
        const Etcdserverpb__RangeResponse *page = (const Etcdserverpb__RangeResponse *)call(
            etcd, etcdserverpb__kv__range__method(), &pages.request.base, ret_result);
        if (page == NULL) {
            break;
        }
        fn(page, user);
        more = etcd_pages_turn(&pages, page);
    }
    etcd_pages_fini(&pages);
    return more == 0;
}
