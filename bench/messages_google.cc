// SPDX-License-Identifier: Apache-2.0 OR MIT
// What messages.c does, by Google's C++: JsonStringToMessage, MessageToJsonString, ParseFromString,
// SerializeToArray, CopyFrom, each into what the one before has left room in. Built by
// tools/bench --json and --codec, where libprotobuf-dev is installed.
#include "deviceplugin.pb.h"
#include "etcd.pb.h"
#include "external_auth.pb.h"
#include "points.pb.h"
#include "trace_service.pb.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <google/protobuf/util/json_util.h>
#include <iterator>
#include <map>
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
    if (argc != 5) {
        return 2;
    }
    std::ifstream file(argv[3], std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::size_t n = std::strtoul(argv[4], nullptr, 10);
    const auto message = make(argv[2]);
    const auto other = make(argv[2]);
    if (!google::protobuf::util::JsonStringToMessage(text, message.get()).ok()) {
        return 1;
    }
    const std::string bytes = message->SerializeAsString();
    std::string written;
    static char room[1 << 22];
    const std::map<std::string, std::function<bool()>> operations = {
        {"read",
         [&] {
             other->Clear();
             return google::protobuf::util::JsonStringToMessage(text, other.get()).ok();
         }},
        {"write",
         [&] {
             written.clear();
             return google::protobuf::util::MessageToJsonString(*message, &written).ok();
         }},
        {"decode", [&] { return other->ParseFromString(bytes); }},
        {"encode", [&] { return message->SerializeToArray(room, sizeof room); }},
        {"clone",
         [&] {
             other->CopyFrom(*message);
             return true;
         }},
    };
    const auto operation = operations.find(argv[1]);
    if (operation == operations.end()) {
        return 2;
    }
    const double begin = now_ns();
    for (std::size_t i = 0; i < n; i++) {
        if (!operation->second()) {
            return 1;
        }
    }
    std::printf("{\"text_bytes\": %zu, \"bytes\": %zu, \"ns\": %.1f}\n", text.size(), bytes.size(),
                (now_ns() - begin) / static_cast<double>(n));
    return 0;
}
