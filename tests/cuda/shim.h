// Compiles a CUDA source as C++ and runs its kernels on the processor: for tests, on machines without a GPU.
//
// A thread of a block is a fiber, which runs until it waits for others: at a barrier of the block, or in an operation of
// its warp. Blocks run one after the other, so that a shared variable is a static one; it is filled with rubbish before
// every block. Threads and blocks run in ascending or in descending order, so that what is read before it was written
// is found in one of the two, where a barrier is missing. It says nothing about speed, nor about the order in which a
// GPU's memory shows what was written.
//
// What the kernels here do not use is not covered: dynamic shared memory, textures, floating-point atomics, <<<>>>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

struct dim3 {
    unsigned int x = 1, y = 1, z = 1;
};

namespace shim {

enum class Order { FORWARD, REVERSE };

// What a kernel takes.
struct Parameter {
    unsigned int size;
    bool pointer;
    // A pointer to what is not const.
    bool written;
};

struct Entry {
    const char* name;
    std::vector<Parameter> parameters;
    // Calls the kernel, for one thread, with pointers to its arguments.
    void (*call)(void** arguments);
};

// The kernel of this name, or null.
const Entry* find(const std::string& name);

// Runs a grid. Empty if all is well; else what is wrong, and then the grid has run in part.
std::string launch(const Entry& entry, dim3 grid, dim3 block, void** arguments, Order order);

// Notes a kernel at start-up.
struct Register {
    explicit Register(Entry entry);
};

template <class A>
constexpr Parameter parameter() {
    using To = std::remove_pointer_t<A>;
    return {sizeof(A), std::is_pointer_v<A>, std::is_pointer_v<A> && !std::is_const_v<To>};
}

template <class... A, size_t... I>
void call_with(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<A>*>(arguments[I])...);
}

template <auto KERNEL>
struct Caller;

template <class... A, void (*KERNEL)(A...)>
struct Caller<KERNEL> {
    static void call(void** arguments) { call_with(KERNEL, arguments, std::index_sequence_for<A...>{}); }
    static Entry entry(const char* name) { return {name, {parameter<A>()...}, call}; }
};

// What a warp does together.
enum class Operation { SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, BALLOT, MATCH, SYNC };

void barrier();
uint64_t together(Operation operation, unsigned int mask, uint64_t value, unsigned int argument);

// Of the thread that runs.
extern dim3 thread_index, block_index, block_size, grid_size;

// As 64 bits and back, for what is shuffled.
template <class T>
uint64_t to_bits(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
T shuffled(Operation operation, unsigned int mask, T value, unsigned int argument) {
    const uint64_t bits = together(operation, mask, to_bits(value), argument);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T>
T exchange(T* at, T value) {
    const T before = *at;
    *at = value;
    return before;
}

}  // namespace shim

// Follows a kernel's definition; tests/it/cuda_build.rs writes one for each entry point.
#define SHIM_KERNEL(kernel) static const shim::Register shim_##kernel(shim::Caller<&kernel>::entry(#kernel));

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// All in one section, so that it can be filled.
#define __shared__ static __attribute__((section("shim_shared")))

#define threadIdx shim::thread_index
#define blockIdx shim::block_index
#define blockDim shim::block_size
#define gridDim shim::grid_size

struct alignas(8) uint2 {
    unsigned int x, y;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) uint4 {
    unsigned int x, y, z, w;
};
inline uint2 make_uint2(unsigned int x, unsigned int y) { return {x, y}; }
inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) { return {x, y, z, w}; }

template <class T>
T min(T a, T b) {
    return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
    return a < b ? b : a;
}
inline int __popc(unsigned int word) { return __builtin_popcount(word); }
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int __clz(int word) { return word == 0 ? 32 : __builtin_clz(word); }

template <class T>
T __ldg(const T* at) {
    return *at;
}
template <class T>
T __ldcs(const T* at) {
    return *at;
}

inline void __syncthreads() { shim::barrier(); }
inline void __syncwarp(unsigned int mask = ~0u) { shim::together(shim::Operation::SYNC, mask, 0, 0); }
inline unsigned int __ballot_sync(unsigned int mask, bool yes) {
    return static_cast<unsigned int>(shim::together(shim::Operation::BALLOT, mask, yes, 0));
}
inline bool __any_sync(unsigned int mask, bool yes) { return __ballot_sync(mask, yes) != 0; }
template <class T>
unsigned int __match_any_sync(unsigned int mask, T value) {
    return static_cast<unsigned int>(shim::together(shim::Operation::MATCH, mask, shim::to_bits(value), 0));
}
template <class T>
T __shfl_sync(unsigned int mask, T value, unsigned int lane) {
    return shim::shuffled(shim::Operation::SHUFFLE, mask, value, lane);
}
template <class T>
T __shfl_up_sync(unsigned int mask, T value, unsigned int distance) {
    return shim::shuffled(shim::Operation::SHUFFLE_UP, mask, value, distance);
}
template <class T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int distance) {
    return shim::shuffled(shim::Operation::SHUFFLE_DOWN, mask, value, distance);
}
template <class T>
T __shfl_xor_sync(unsigned int mask, T value, unsigned int lanes) {
    return shim::shuffled(shim::Operation::SHUFFLE_XOR, mask, value, lanes);
}

// One thread runs at a time, so that plain reads and writes are atomic. Of 32 and of 64 bits.
template <class T>
T atomicAdd(T* at, std::common_type_t<T> value) {
    return shim::exchange<T>(at, *at + value);
}
template <class T>
T atomicMin(T* at, std::common_type_t<T> value) {
    return shim::exchange<T>(at, min<T>(*at, value));
}
template <class T>
T atomicMax(T* at, std::common_type_t<T> value) {
    return shim::exchange<T>(at, max<T>(*at, value));
}
template <class T>
T atomicOr(T* at, std::common_type_t<T> value) {
    return shim::exchange<T>(at, *at | value);
}
template <class T>
T atomicExch(T* at, std::common_type_t<T> value) {
    return shim::exchange<T>(at, value);
}
template <class T>
T atomicCAS(T* at, std::common_type_t<T> expected, std::common_type_t<T> value) {
    return shim::exchange<T>(at, *at == expected ? value : *at);
}
