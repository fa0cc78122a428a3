/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The program of each build: what it prints depends on all three files. C and C++.
 */

#ifdef PREFIXED
#include "of/house/shop/order.bow.h"
#else
#include "shop/order.bow.h"
#endif

#include <stdio.h>

int main(void)
{
    Shop__Order *order = shop__order__new(NULL);
    Common__Money *price = shop__order__mutable_price(order, NULL);
    Google__Protobuf__Timestamp *placed_at = shop__order__mutable_placed_at(order, NULL);

    if (price == NULL || placed_at == NULL) {
        return 1;
    }
    price->currency = COMMON__CURRENCY__POUND;
    placed_at->seconds = 60;
    printf("%s %zu bytes, a pound is %d\n", shop__orders__service.name,
           shop__order__get_packed_size(order), (int)price->currency);
    shop__order__free(order);
    return 0;
}
