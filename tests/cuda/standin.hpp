// A test double of the CUDA driver library, for machines without a GPU: what is shared by its parts.
//
// It is built as `libcuda.so` by tests/it/cuda_driver.rs and found by a child process through LD_LIBRARY_PATH alone.
// Kernels run on the processor, from the same sources that the PTX is made of. It proves that the host code hands the
// driver the right work in an order that is right whatever the driver does in between, and that it bears every failed
// call. It says nothing about speed, about the memory model of a GPU, or about the instructions in the PTX.
//
//   standin.cpp         settings, planted faults, complaints
//   standin_queue.cpp   streams, events, what has happened before what
//   standin_memory.cpp  buffers and copies
//   standin_kernel.cpp  modules and launches
//   standin_api.cpp     the entry points
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shim {
struct Entry;
}

namespace standin {

using Address = uint64_t;

// The codes of CUresult that this library returns. Any other value would be undefined behaviour in a Rust enum.
#define STANDIN_CODES(code) \
    code(0, SUCCESS) code(1, INVALID_VALUE) code(2, OUT_OF_MEMORY) code(3, NOT_INITIALIZED) \
    code(46, DEVICE_UNAVAILABLE) \
    code(100, NO_DEVICE) code(101, INVALID_DEVICE) code(200, INVALID_IMAGE) code(201, INVALID_CONTEXT) \
    code(214, ECC_UNCORRECTABLE) code(218, INVALID_PTX) code(222, UNSUPPORTED_PTX_VERSION) code(400, INVALID_HANDLE) \
    code(500, NOT_FOUND) code(600, NOT_READY) code(700, ILLEGAL_ADDRESS) code(701, LAUNCH_OUT_OF_RESOURCES) \
    code(702, LAUNCH_TIMEOUT) code(719, LAUNCH_FAILED) code(801, NOT_SUPPORTED) code(999, UNKNOWN)
enum Code : int {
#define code(number, name) name = number,
    STANDIN_CODES(code)
#undef code
};

// How many operations of each stream are known to be finished.
struct Stream;
using Clock = std::map<const Stream*, uint64_t>;

struct Buffer {
    int number = 0, device = 0;
    Address at = 0;
    size_t bytes = 0;
    char* pages = nullptr;  // what is mapped: a guard page, the buffer and its slack, a guard page
    size_t mapped = 0;
    bool pinned = false;
    bool freed = false;  // by the program
    bool gone = false;   // and unmapped: the free has been reached on its stream
    int queued = 0;      // operations that use it and have not run
    // Who wrote it last, and who has read it since.
    const Stream* writer = nullptr;
    uint64_t written = 0;
    std::string written_by;
    Clock readers;
};

struct Operation {
    std::string what;
    std::function<void()> run;
    std::vector<Buffer*> uses;
    Stream* after = nullptr;  // nothing of this stream runs before so much of that one has
    uint64_t after_position = 0;
};

struct Stream {
    int device, number;
    std::deque<Operation> queue;
    uint64_t put = 0, done = 0;
    Clock known;
};

struct Event {
    int device;
    bool timed;
    bool recorded = false;
    Stream* stream = nullptr;
    uint64_t position = 0;
    Clock known;
    std::shared_ptr<double> milliseconds;
};

// What the PTX says of an entry point.
struct Entry {
    std::vector<unsigned> sizes;
    unsigned max_threads = 1024, shared_bytes = 0;
};

struct Module {
    int device;
    std::map<std::string, Entry> entries;
};

struct Function {
    Module* module;
    const shim::Entry* kernel;
    Entry entry;
};

struct Fault {
    std::string what;  // a kind of call, an entry point, or "any"
    uint64_t number;   // which of them, from 1
    int code;
    std::string how;   // "", "late", "sticky" or "lost"
};

// All there is. One lock holds it; it is never destroyed, so that late drops of the program still find it.
struct World {
    std::recursive_mutex lock;
    // Settings.
    int devices = 1, driver = 12080, capability = 90;
    bool pools = true, eager = false, races = true, trace = false;
    uint64_t memory = 1u << 30;
    std::vector<Fault> faults;
    // What became of the context: 0, or the error that every later call returns.
    bool initialised = false;
    int broken = 0, late = 0;
    bool lost = false, free_failed = false;
    int complaints = 0, numbers = 0;
    std::map<std::string, uint64_t> counts;
    // What exists.
    Clock host;
    std::vector<uint64_t> used;
    std::vector<int> retained;
    std::vector<Stream*> default_streams;
    std::map<Address, Buffer*> buffers;
    std::set<void*> streams, events, modules;
};
extern World& world;
extern thread_local int current;  // the device whose context is current on this thread, or -1

// standin.cpp
std::string setting(const char* name, const char* otherwise);
void read_settings();
void complain(const char* format, ...) __attribute__((format(printf, 1, 2)));
const char* name_of(int code);
enum Need { NOTHING, DRIVER, CONTEXT };
// Counts a call, and gives the error that it must return at once: a planted one, or of a broken context.
int enter(const char* function, const char* kind, Need need);

// standin_queue.cpp
Stream* stream_of(void* handle);
void put(Stream* stream, Operation operation, const std::vector<std::pair<Buffer*, bool>>& accesses);
void run_until(Stream* stream, uint64_t position);
int wait_for(Stream* stream, uint64_t position, const Clock& known);
int wait_for(Stream* stream);
int wait_for_device(int device);

// standin_memory.cpp
int new_buffer(Address* out, size_t bytes, bool pinned);
Buffer* buffer_to_free(const char* function, Address at, bool pinned);
void unmap(Buffer* buffer);
Buffer* device_range(const char* function, Address at, size_t bytes, const char* role);
void check_slack(Buffer* buffer, const std::string& who);
int copy(const char* function, Address to, Address from, size_t bytes, Stream* stream, bool to_device,
         bool from_device);

// standin_kernel.cpp
int load_module(Module** out, const char* text);
int launch(Function* function, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared_bytes,
           Stream* stream, void** arguments);
int find_function(Function** out, Module* module, const char* name);

}  // namespace standin
