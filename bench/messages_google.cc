// SPDX-License-Identifier: Apache-2.0 OR MIT
// What json.c does, by Google's C++: MessageToJsonString and JsonStringToMessage. Built by
// tools/bench --json, where libprotobuf-dev is installed.
#include "deviceplugin.pb.h"
#include "etcd.pb.h"
#include "external_auth.pb.h"
#include "points.pb.h"
#include "trace_service.pb.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <google/protobuf/util/json_util.h>
#include <iterator>
#include <memory>
#include <string>

static std::unique_ptr<google::protobuf::Message> make(const std::string &name)
{
    if (name == "spans") {
        return std::make_unique<opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest>();
    }
    if (name == "range") {
        return std::make_unique<etcdserverpb::RangeResponse>();
    }
    if (name == "check") {
        return std::make_unique<envoy::service::auth::v3::CheckRequest>();
    }
    if (name == "devices") {
        return std::make_unique<v1beta1::ListAndWatchResponse>();
    }
    return std::make_unique<points::Points>();
}

static double now_ns()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        return 2;
    }
    std::ifstream file(argv[2], std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::size_t n = std::strtoul(argv[3], nullptr, 10);
    auto message = make(argv[1]);
    double begin = now_ns();
    for (std::size_t i = 0; i < n; i++) {
        message->Clear();
        if (!google::protobuf::util::JsonStringToMessage(text, message.get()).ok()) {
            return 1;
        }
    }
    double middle = now_ns();
    std::string written;
    for (std::size_t i = 0; i < n; i++) {
        written.clear();
        if (!google::protobuf::util::MessageToJsonString(*message, &written).ok()) {
            return 1;
        }
    }
    std::printf("{\"bytes\": %zu, \"read_ns\": %.0f, \"write_ns\": %.0f}\n", written.size(),
                (middle - begin) / static_cast<double>(n), (now_ns() - middle) / static_cast<double>(n));
    return 0;
}
