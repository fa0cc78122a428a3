// SPDX-License-Identifier: Apache-2.0 OR MIT
// gRPC's C++ implementation as a peer of Bowline, for peers.py: see its top for the arguments.
#include "echo.grpc.pb.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <grpcpp/grpcpp.h>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

static const size_t kMaxOutstanding = 16; // messages of a stream that have not come back yet

// A call of Talk on the server: each message goes back before the next one is read.
class Echoer final : public grpc::ServerBidiReactor<peers::Message, peers::Message>
{
  public:
    Echoer()
    {
        StartRead(&message);
    }

    void OnReadDone(bool ok) override
    {
        if (ok) {
            StartWrite(&message);
        } else {
            Finish(grpc::Status::OK);
        }
    }

    void OnWriteDone(bool ok) override
    {
        if (ok) {
            StartRead(&message);
        } else {
            Finish(grpc::Status(grpc::StatusCode::UNKNOWN, "a message did not go back"));
        }
    }

    void OnDone() override
    {
        delete this;
    }

  private:
    peers::Message message;
};

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

    grpc::ServerBidiReactor<peers::Message, peers::Message> *
    Talk(grpc::CallbackServerContext *) override
    {
        return new Echoer;
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

// A stream on which `messages` are to come back, as many as there is time for. Frees itself.
class Talker final : public grpc::ClientBidiReactor<peers::Message, peers::Message>
{
  public:
    Talker(Run &of, const std::vector<peers::Message> &to_send, std::function<void()> and_then)
        : run(of), messages(to_send), then(std::move(and_then))
    {
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
        run.stub->async()->Talk(&context, this);
        StartRead(&reply);
        Send();
        StartCall();
    }

    void OnReadDone(bool ok) override
    {
        if (!ok) {
            return;
        }
        run.calls++;
        if (back == messages.size() || reply.body() != messages[back].body()) {
            run.Fail("the message is another one");
            context.TryCancel();
            return;
        }
        {
            std::lock_guard<std::mutex> lock(mutex);
            back++;
        }
        StartRead(&reply);
        Send();
    }

    void OnWriteDone(bool ok) override
    {
        {
            std::lock_guard<std::mutex> lock(mutex);
            writing = false;
        }
        if (ok) {
            Send();
        }
    }

    void OnDone(const grpc::Status &status) override
    {
        if (!status.ok()) {
            run.Fail(std::to_string(status.error_code()) + ": " + status.error_message());
        } else if (back != sent) {
            run.Fail("messages did not come back");
        }
        auto next = std::move(then);
        delete this;
        next();
    }

  private:
    Run &run;
    const std::vector<peers::Message> &messages;
    std::function<void()> then;
    grpc::ClientContext context;
    peers::Message reply;
    std::mutex mutex; // of what follows: a read and a write may be done at the same time
    size_t sent = 0;
    size_t back = 0;
    bool writing = false;
    bool ended = false;

    // Begins the next write, if it is time for it: there is one at a time.
    void Send()
    {
        std::unique_lock<std::mutex> lock(mutex);
        if (writing || ended) {
            return;
        }
        bool late = sent > 0 && Clock::now() >= run.end;
        if (late || sent == messages.size()) {
            ended = true;
            lock.unlock();
            StartWritesDone();
        } else if (sent - back < kMaxOutstanding) {
            writing = true;
            const peers::Message *message = &messages[sent++];
            lock.unlock();
            StartWrite(message);
        }
    }
};

struct Slot {
    Run *run;
    std::vector<peers::Message> messages; // of a stream; none: the calls are unary
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
        if (!messages.empty()) {
            new Talker(*run, messages, [this] { Start(); });
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

// Counts how often `channel` was ready and then was not, until `over`.
static void WatchEnds(grpc::Channel &channel, const std::atomic<bool> &over,
                      std::atomic<int> &ended)
{
    auto state = channel.GetState(false);
    while (!over) {
        auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(50);
        if (channel.WaitForStateChange(state, deadline) && !over) {
            ended += state == GRPC_CHANNEL_READY;
            state = channel.GetState(false);
        }
    }
}

static std::string Body(int number, size_t bytes)
{
    char digits[16];
    snprintf(digits, sizeof(digits), "%010d", number);
    return (digits + std::string(bytes, 'x')).substr(0, bytes);
}

// Unary calls, or with `messages` streams of so many.
static int Call(const std::string &target, int in_flight, size_t bytes, double seconds,
                int messages = 0)
{
    Run run;
    auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
    run.stub = peers::Echo::NewStub(channel);
    std::atomic<bool> over{false};
    std::atomic<int> ended{0};
    std::thread watcher([&] { WatchEnds(*channel, over, ended); });
    std::vector<Slot> slots(in_flight);
    for (int i = 0; i < in_flight; i++) {
        slots[i].messages.resize(messages);
        for (int k = 0; k < messages; k++) {
            slots[i].messages[k].set_body(Body(i * messages + k, bytes));
        }
    }
    auto start = Clock::now();
    run.end = start + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
    run.running = in_flight;
    for (int i = 0; i < in_flight; i++) {
        slots[i].run = &run;
        slots[i].request.set_body(Body(i, bytes));
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

// One call after the other with a pause, for each line of so many seconds.
static int Pace(const std::string &target, size_t bytes)
{
    auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
    auto stub = peers::Echo::NewStub(channel);
    std::atomic<bool> over{false};
    std::atomic<int> ended{0};
    std::thread watcher([&] { WatchEnds(*channel, over, ended); });
    peers::Message request;
    request.set_body(Body(0, bytes));
    double seconds;
    while (std::cin >> seconds) {
        std::vector<int64_t> took;
        Run run;
        int ended_before = ended;
        auto start = Clock::now();
        run.end = start + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
        while (Clock::now() < run.end) {
            grpc::ClientContext context;
            context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
            peers::Message reply;
            auto begin = Clock::now();
            auto status = stub->Say(&context, request, &reply);
            took.push_back(
                std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count());
            if (!status.ok()) {
                run.Fail(std::to_string(status.error_code()) + ": " + status.error_message());
            } else if (reply.body() != request.body()) {
                run.Fail("the reply is another call's");
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        std::chrono::duration<double> whole = Clock::now() - start;
        std::cout << took.size() << ' ' << run.failed << ' ' << ended - ended_before << ' '
                  << whole.count() << ' ' << run.error << '\n';
        for (int64_t us : took) {
            std::cout << us << ' ';
        }
        std::cout << std::endl;
    }
    over = true;
    watcher.join();
    return 0;
}

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words[0] == "ready") {
        std::string line;
        std::cout << "ready" << std::endl;
        std::getline(std::cin, line);
        words.erase(words.begin());
    }
    if (words.size() == 2 && words[0] == "server") {
        return Serve(std::stoi(words[1]));
    }
    if (words.size() == 3 && words[0] == "paced") {
        return Pace(words[1], std::stoul(words[2]));
    }
    if (words.size() == 5 && words[0] == "client") {
        return Call(words[1], std::stoi(words[2]), std::stoul(words[3]), std::stod(words[4]));
    }
    if (words.size() == 6 && words[0] == "streams") {
        return Call(words[1], std::stoi(words[2]), std::stoul(words[3]), std::stod(words[4]),
                    std::stoi(words[5]));
    }
    return 2;
}
