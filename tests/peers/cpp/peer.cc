// SPDX-License-Identifier: Apache-2.0 OR MIT
// gRPC's C++ implementation as a peer of Bowline, for peers.py: see its top for the arguments.
#include "echo.grpc.pb.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <grpcpp/grpcpp.h>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

class EchoService : public peers::Echo::CallbackService
{
    grpc::ServerUnaryReactor *Say(grpc::CallbackServerContext *context,
                                  const peers::Message *request, peers::Message *reply) override
    {
        reply->set_body(request->body());
        auto *reactor = context->DefaultReactor();
        reactor->Finish(grpc::Status::OK);
        return reactor;
    }
};

static int Serve(int max_age_ms)
{
    EchoService service;
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    if (max_age_ms > 0) {
        builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, max_age_ms);
    }
    auto server = builder.BuildAndStart();
    std::cout << port << std::endl;
    std::string line;
    std::getline(std::cin, line);
    server->Shutdown();
    return 0;
}

struct Run {
    std::unique_ptr<peers::Echo::Stub> stub;
    Clock::time_point end;
    std::atomic<uint64_t> calls{0};
    std::mutex mutex; // of what follows
    std::condition_variable left;
    int running = 0;
    uint64_t failed = 0;
    std::string error;

    void Fail(const std::string &text)
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (failed++ == 0) {
            error = text;
        }
    }
};

struct Slot {
    Run *run;
    std::unique_ptr<grpc::ClientContext> context;
    peers::Message request;
    peers::Message reply;

    void Start()
    {
        if (Clock::now() >= run->end) {
            std::lock_guard<std::mutex> lock(run->mutex);
            if (--run->running == 0) {
                run->left.notify_one();
            }
            return;
        }
        context = std::make_unique<grpc::ClientContext>();
        context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
        run->stub->async()->Say(context.get(), &request, &reply, [this](grpc::Status status) {
            run->calls++;
            if (!status.ok()) {
                run->Fail(std::to_string(status.error_code()) + ": " + status.error_message());
            } else if (reply.body() != request.body()) {
                run->Fail("the reply is another call's");
            }
            Start();
        });
    }
};

// How often `channel` was ready and then was not, until `over`.
static int WatchEnds(grpc::Channel &channel, const std::atomic<bool> &over)
{
    int ended = 0;
    auto state = channel.GetState(false);
    while (!over) {
        auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(50);
        if (channel.WaitForStateChange(state, deadline) && !over) {
            ended += state == GRPC_CHANNEL_READY;
            state = channel.GetState(false);
        }
    }
    return ended;
}

static int Call(const std::string &target, int in_flight, size_t bytes, double seconds)
{
    Run run;
    auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
    run.stub = peers::Echo::NewStub(channel);
    std::atomic<bool> over{false};
    int ended = 0;
    std::thread watcher([&] { ended = WatchEnds(*channel, over); });
    std::vector<Slot> slots(in_flight);
    auto start = Clock::now();
    run.end = start + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
    run.running = in_flight;
    for (int i = 0; i < in_flight; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%010d", i);
        slots[i].run = &run;
        slots[i].request.set_body((number + std::string(bytes, 'x')).substr(0, bytes));
        slots[i].Start();
    }
    std::unique_lock<std::mutex> lock(run.mutex);
    run.left.wait(lock, [&] { return run.running == 0; });
    std::chrono::duration<double> took = Clock::now() - start;
    over = true;
    watcher.join();
    std::cout << run.calls << ' ' << run.failed << ' ' << ended << ' ' << took.count() << ' '
              << run.error << std::endl;
    return 0;
}

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 2 && words[0] == "server") {
        return Serve(std::stoi(words[1]));
    }
    if (words.size() == 5 && words[0] == "client") {
        return Call(words[1], std::stoi(words[2]), std::stoul(words[3]), std::stod(words[4]));
    }
    return 2;
}
