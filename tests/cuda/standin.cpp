// Test double of the CUDA driver: settings, planted faults and complaints. See standin.hpp.
//
//   STANDIN_DEVICES=n      devices (1)
//   STANDIN_MEMORY=bytes   memory of each (1 GiB)
//   STANDIN_CAPABILITY=90  compute capability, times ten
//   STANDIN_DRIVER=12080   what cuDriverGetVersion says; newer PTX than it knows is refused
//   STANDIN_POOLS=0        no memory pools, hence no allocation in stream order
//   STANDIN_ORDER=eager    run all work when it is put; otherwise only when something waits for it
//   STANDIN_THREADS=reverse  run the threads of a kernel in descending order
//   STANDIN_RACES=0        do not look for races between streams
//   STANDIN_COUNT=1        tell at the end how often each entry point was called
//   STANDIN_TRACE=1        tell of every call as it comes, of a launch with the name of the kernel
//   STANDIN_FAIL=rules     what:n:code[:late|:sticky|:lost], separated by `;`: the nth call of that kind returns the
//                          code. late: it succeeds, and the next wait returns the code; sticky: so does every later
//                          call that needs a context; lost: every later call does.
#include "standin.hpp"

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace standin {

World& world = *new World;
thread_local int current = -1;

std::string setting(const char* name, const char* otherwise) {
    const char* value = getenv(name);
    return value ? value : otherwise;
}

static uint64_t number_setting(const char* name, uint64_t otherwise) {
    const char* value = getenv(name);
    return value ? strtoull(value, nullptr, 0) : otherwise;
}

static void read_faults(std::string rules) {
    rules += ';';
    for (size_t from = 0, to; (to = rules.find(';', from)) != std::string::npos; from = to + 1) {
        std::string rule = rules.substr(from, to - from);
        if (rule.empty()) continue;
        char what[64], how[16] = "";
        unsigned long long number;
        int code;
        if (sscanf(rule.c_str(), "%63[^:]:%llu:%d:%15s", what, &number, &code, how) < 3 || !name_of(code)) {
            complain("STANDIN_FAIL: cannot read `%s`", rule.c_str());
            continue;
        }
        world.faults.push_back({what, number, code, how});
    }
}

void read_settings() {
    world.devices = number_setting("STANDIN_DEVICES", world.devices);
    world.memory = number_setting("STANDIN_MEMORY", world.memory);
    world.capability = number_setting("STANDIN_CAPABILITY", world.capability);
    world.driver = number_setting("STANDIN_DRIVER", world.driver);
    world.pools = number_setting("STANDIN_POOLS", world.pools);
    world.races = number_setting("STANDIN_RACES", world.races);
    world.trace = number_setting("STANDIN_TRACE", world.trace);
    world.eager = setting("STANDIN_ORDER", "queued") == "eager";
    read_faults(setting("STANDIN_FAIL", ""));
    for (int device = 0; device < world.devices; device++) {
        world.default_streams.push_back(new Stream{device, ++world.numbers, {}, 0, 0, {}});
        world.used.push_back(0);
        world.retained.push_back(0);
    }
}

void complain(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("stand-in: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    world.complaints++;
}

const char* name_of(int number_wanted) {
    switch (number_wanted) {
#define code(number, name) case number: return number ? "CUDA_ERROR_" #name : "CUDA_SUCCESS";
        STANDIN_CODES(code)
#undef code
    }
    return nullptr;
}

int enter(const char* function, const char* kind, Need need) {
    if (world.trace) fprintf(stderr, "stand-in: calls %s\n", function);
    for (const std::string& what : {std::string(function), std::string(kind), std::string("any")}) {
        uint64_t number = ++world.counts[what];
        for (const Fault& fault : world.faults) {
            if (fault.what != what || fault.number != number) continue;
            if (getenv("STANDIN_COUNT")) fprintf(stderr, "stand-in: fails %s\n", function);
            if (fault.how == "late") {
                world.late = fault.code;
                continue;
            }
            if (fault.how == "sticky" || fault.how == "lost") world.broken = fault.code;
            if (fault.how == "lost") world.lost = true;
            // What could not be given back is not the program's leak.
            if (!strcmp(kind, "free")) world.free_failed = true;
            return fault.code;
        }
    }
    if (need == NOTHING) return SUCCESS;
    if (world.lost) return world.broken;
    if (!world.initialised) return NOT_INITIALIZED;
    if (need == DRIVER) return SUCCESS;
    if (current < 0) {
        complain("%s: no context is current on this thread", function);
        return INVALID_CONTEXT;
    }
    return world.broken;
}

// The program may not look at what its last calls returned, so mistakes show up in the exit status.
__attribute__((destructor)) static void report() {
    if (!world.broken && !world.free_failed) {
        for (auto& [at, buffer] : world.buffers) {
            const char* kind = buffer->pinned ? "pinned" : "device";
            if (!buffer->freed) complain("leak: %s buffer #%d of %zu bytes", kind, buffer->number, buffer->bytes);
        }
        size_t streams = world.streams.size(), events = world.events.size(), modules = world.modules.size();
        if (streams + events + modules) {
            complain("leak: %zu streams, %zu events, %zu modules", streams, events, modules);
        }
        // cudarc keeps a context that it could not look at after opening it, so that a planted fault may cost one.
        for (int retained : world.retained) {
            if (retained && world.faults.empty()) complain("leak: a context");
        }
    }
    if (getenv("STANDIN_COUNT")) {
        for (auto& [what, n] : world.counts) {
            fprintf(stderr, "stand-in: called %s %llu\n", what.c_str(), (unsigned long long)n);
        }
    }
    if (world.complaints) {
        fflush(nullptr);
        _exit(86);
    }
}

}  // namespace standin
