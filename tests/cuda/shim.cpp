// Runs kernels on the processor: see shim.h.
#include "shim.h"

#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

// Where the linker puts the shared variables of all kernels. One of our own, so that there always is such a section.
__shared__ __attribute__((used)) char shim_shared_begin[16];
extern "C" char __start_shim_shared[] __attribute__((visibility("hidden")));
extern "C" char __stop_shim_shared[] __attribute__((visibility("hidden")));

namespace shim {

dim3 thread_index, block_index, block_size, grid_size;

namespace {

constexpr unsigned int WARP = 32;
constexpr unsigned int MOST_THREADS = 1024;
constexpr size_t STACK = 64 << 10;
constexpr size_t PAGE = 4096;
constexpr int RUBBISH = 0xa5;
// What a lane gets from one that takes no part.
constexpr uint64_t NOBODY = 0xdeadbeefdeadbeef;

// --- Switching from one stack to another -----------------------------------------------------------------------------

#ifdef __x86_64__
// A stack is known by its pointer; what a function must preserve lies on it.
using Stack = void*;
extern "C" void shim_switch(Stack* from, Stack to);
asm(R"(
.text
.type shim_switch, @function
shim_switch:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret
.size shim_switch, . - shim_switch
)");

void prepare(Stack& stack, char* base, void (*start)()) {
    void** top = reinterpret_cast<void**>(base + STACK);
    // As if `start` had just been called, by nobody.
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(start);
    for (int preserved = 0; preserved < 6; ++preserved) {
        *--top = nullptr;
    }
    stack = top;
}

void switch_to(Stack& from, Stack& to) { shim_switch(&from, to); }
#else
using Stack = ucontext_t;

void prepare(Stack& stack, char* base, void (*start)()) {
    getcontext(&stack);
    stack.uc_stack.ss_sp = base;
    stack.uc_stack.ss_size = STACK;
    stack.uc_link = nullptr;
    makecontext(&stack, start, 0);
}

void switch_to(Stack& from, Stack& to) { swapcontext(&from, &to); }
#endif

// --- A block ---------------------------------------------------------------------------------------------------------

enum class State { READY, AT_BARRIER, IN_WARP, DONE };

struct Thread {
    State state;
    dim3 index;
    Stack stack;
    // What it waits for in its warp, and what it gets.
    Operation operation;
    unsigned int mask;
    unsigned int argument;
    uint64_t value;
    uint64_t result;
};

struct Block {
    const Entry* entry;
    void** arguments;
    unsigned int n;
    unsigned int live;
    unsigned int at_barrier;
    unsigned int running;
    Thread threads[MOST_THREADS];
    Stack scheduler;
    char* stacks = nullptr;
    std::string fault;
};
Block block;

// Leaves the running thread until it is ready again.
void wait() {
    Thread& thread = block.threads[block.running];
    if (thread.state != State::READY) {
        switch_to(thread.stack, block.scheduler);
    }
    thread_index = thread.index;
}

void open_barrier_if_all_are_there() {
    if (block.at_barrier == 0 || block.at_barrier != block.live) {
        return;
    }
    block.at_barrier = 0;
    for (unsigned int i = 0; i < block.n; ++i) {
        if (block.threads[i].state == State::AT_BARRIER) {
            block.threads[i].state = State::READY;
        }
    }
}

// Which lane another one reads; `lane` itself where the distance leads out of the warp.
unsigned int source(const Thread& thread, unsigned int lane) {
    const unsigned int argument = thread.argument;
    switch (thread.operation) {
        case Operation::SHUFFLE: return argument % WARP;
        case Operation::SHUFFLE_UP: return argument <= lane ? lane - argument : lane;
        case Operation::SHUFFLE_DOWN: return lane + argument < WARP ? lane + argument : lane;
        case Operation::SHUFFLE_XOR: return (lane ^ argument) % WARP;
        default: return lane;
    }
}

// Does what the lanes of a mask wait for, once all of them that have not ended do.
void go_on_if_all_are_there(unsigned int warp, Operation operation, unsigned int mask) {
    Thread* lanes = block.threads + warp * WARP;
    const unsigned int n = min(WARP, block.n - warp * WARP);
    unsigned int there = 0;
    for (unsigned int lane = 0; lane < n; ++lane) {
        const Thread& thread = lanes[lane];
        if ((mask >> lane & 1) == 0 || thread.state == State::DONE) {
            continue;
        }
        if (thread.state != State::IN_WARP || thread.operation != operation || thread.mask != mask) {
            return;
        }
        there |= 1u << lane;
    }
    const auto each = [&](auto what) {
        for (unsigned int rest = there; rest != 0; rest &= rest - 1) {
            const unsigned int lane = __builtin_ctz(rest);
            what(lanes[lane], lane);
        }
    };
    uint64_t ballot = 0;
    each([&](Thread& thread, unsigned int lane) { ballot |= (thread.value & 1) << lane; });
    each([&](Thread& thread, unsigned int lane) {
        if (operation == Operation::BALLOT) {
            thread.result = ballot;
        } else if (operation == Operation::MATCH) {
            thread.result = 0;
            each([&](Thread& other, unsigned int at) { thread.result |= uint64_t{other.value == thread.value} << at; });
        } else {
            const unsigned int from = source(thread, lane);
            thread.result = there >> from & 1 ? lanes[from].value : NOBODY;
        }
    });
    each([](Thread& thread, unsigned int) { thread.state = State::READY; });
}

// The outermost function of every fiber. It never returns: the scheduler does not come back to a thread that is done.
void run_thread() {
    thread_index = block.threads[block.running].index;
    block.entry->call(block.arguments);
    Thread& thread = block.threads[block.running];
    thread.state = State::DONE;
    block.live -= 1;
    open_barrier_if_all_are_there();
    const unsigned int warp = block.running / WARP;
    for (unsigned int i = warp * WARP; i < min(block.n, (warp + 1) * WARP); ++i) {
        const Thread& waiting = block.threads[i];
        if (waiting.state == State::IN_WARP) {
            go_on_if_all_are_there(warp, waiting.operation, waiting.mask);
        }
    }
    switch_to(thread.stack, block.scheduler);
    __builtin_unreachable();
}

char* stack_of(unsigned int thread) {
    constexpr size_t each = STACK + PAGE;
    if (block.stacks == nullptr) {
        void* pages = mmap(nullptr, each * MOST_THREADS, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) {
            return nullptr;
        }
        block.stacks = static_cast<char*>(pages);
        for (size_t i = 0; i < MOST_THREADS; ++i) {
            mprotect(block.stacks + i * each, PAGE, PROT_NONE);
        }
    }
    return block.stacks + thread * each + PAGE;
}

void run_block(Order order) {
    std::memset(__start_shim_shared, RUBBISH, __stop_shim_shared - __start_shim_shared);
    block.live = block.n;
    block.at_barrier = 0;
    for (unsigned int i = 0; i < block.n; ++i) {
        Thread& thread = block.threads[i];
        thread.state = State::READY;
        thread.index = {i % block_size.x, i / block_size.x % block_size.y, i / block_size.x / block_size.y};
        prepare(thread.stack, stack_of(i), run_thread);
    }
    while (block.live > 0 && block.fault.empty()) {
        bool moved = false;
        for (unsigned int i = 0; i < block.n; ++i) {
            const unsigned int at = order == Order::FORWARD ? i : block.n - 1 - i;
            if (block.threads[at].state == State::READY) {
                moved = true;
                block.running = at;
                switch_to(block.scheduler, block.threads[at].stack);
            }
        }
        if (!moved) {
            const unsigned int in_warps = block.live - block.at_barrier;
            block.fault = "threads wait for each other: " + std::to_string(block.at_barrier) + " at a barrier, " +
                          std::to_string(in_warps) + " in their warps, of " + std::to_string(block.n);
        }
    }
}

std::vector<Entry>& entries() {
    static std::vector<Entry> all;
    return all;
}

}  // namespace

Register::Register(Entry entry) { entries().push_back(std::move(entry)); }

const Entry* find(const std::string& name) {
    for (const Entry& entry : entries()) {
        if (name == entry.name) {
            return &entry;
        }
    }
    return nullptr;
}

void barrier() {
    block.threads[block.running].state = State::AT_BARRIER;
    block.at_barrier += 1;
    open_barrier_if_all_are_there();
    wait();
}

uint64_t together(Operation operation, unsigned int mask, uint64_t value, unsigned int argument) {
    Thread& thread = block.threads[block.running];
    if ((mask >> block.running % WARP & 1) == 0) {
        block.fault = "a thread is not in the mask of its own operation";
        switch_to(thread.stack, block.scheduler);
    }
    thread.operation = operation;
    thread.mask = mask;
    thread.value = value;
    thread.argument = argument;
    thread.state = State::IN_WARP;
    go_on_if_all_are_there(block.running / WARP, operation, mask);
    wait();
    return thread.result;
}

std::string launch(const Entry& entry, dim3 grid, dim3 size, void** arguments, Order order) {
    const uint64_t threads = uint64_t{size.x} * size.y * size.z;
    const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
    if (threads == 0 || threads > MOST_THREADS || blocks == 0 || grid.y > 65535 || grid.z > 65535) {
        return "a grid or block of an impossible size";
    }
    if (stack_of(0) == nullptr) {
        return "no memory for stacks";
    }
    block.entry = &entry;
    block.arguments = arguments;
    block.n = static_cast<unsigned int>(threads);
    block.fault.clear();
    block_size = size;
    grid_size = grid;
    for (uint64_t i = 0; i < blocks && block.fault.empty(); ++i) {
        const uint64_t at = order == Order::FORWARD ? i : blocks - 1 - i;
        block_index.x = static_cast<unsigned int>(at % grid.x);
        block_index.y = static_cast<unsigned int>(at / grid.x % grid.y);
        block_index.z = static_cast<unsigned int>(at / grid.x / grid.y);
        run_block(order);
    }
    return block.fault.empty() ? "" : std::string(entry.name) + ": " + block.fault;
}

}  // namespace shim
