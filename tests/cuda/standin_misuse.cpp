// Uses the test double of the CUDA driver wrongly, in the way that the first argument names, so that a test sees that
// it complains. The second argument is the PTX of `census`. "right" does the same without a mistake.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

using Address = uint64_t;
extern "C" {
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void**, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuCtxSetCurrent(void*);
int cuCtxSynchronize();
int cuStreamCreate(void**, unsigned);
int cuStreamDestroy_v2(void*);
int cuStreamSynchronize(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuEventCreate(void**, unsigned);
int cuEventDestroy_v2(void*);
int cuEventRecord(void*, void*);
int cuMemAlloc_v2(Address*, size_t);
int cuMemFree_v2(Address);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemcpyHtoDAsync_v2(Address, const void*, size_t, void*);
int cuMemcpyDtoHAsync_v2(void*, Address, size_t, void*);
int cuModuleLoadData(void**, const void*);
int cuModuleUnload(void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
}

static std::string wrong;
static bool is(const char* name) { return wrong == name; }

static void expect(int code, const char* what) {
    if (code) fprintf(stderr, "misuse: %s returns %d\n", what, code);
}
#define CALL(call) expect(call, #call)

int main(int, char** arguments) {
    wrong = arguments[1];
    constexpr size_t BYTES = 1000;
    void *context, *a, *b, *event, *pinned, *module, *census;
    CALL(cuInit(0));
    CALL(cuDevicePrimaryCtxRetain(&context, 0));
    if (!is("no context")) CALL(cuCtxSetCurrent(context));
    CALL(cuStreamCreate(&a, 1));
    if (is("no context")) return 0;
    CALL(cuStreamCreate(&b, 1));
    CALL(cuEventCreate(&event, 2));
    Address memory, pools;
    CALL(cuMemAlloc_v2(&memory, BYTES));
    CALL(cuMemAlloc_v2(&pools, 96));
    CALL(cuMemHostAlloc(&pinned, BYTES, 0));
    memset(pinned, 0, BYTES);

    // An upload on one stream, a download on the other, with a wait between.
    CALL(cuMemcpyHtoDAsync_v2(memory, pinned, is("too long a copy") ? BYTES + 1 : BYTES, a));
    CALL(cuEventRecord(event, a));
    if (!is("race")) CALL(cuStreamWaitEvent(b, event, 0));
    char back[BYTES];
    CALL(cuMemcpyDtoHAsync_v2(back, memory, BYTES, b));
    if (is("reads too early")) {
        CALL(cuMemcpyHtoDAsync_v2(memory, "abcd", 4, b));
        CALL(cuMemcpyDtoHAsync_v2(pinned, memory, 4, b));
        if (memcmp(pinned, "abcd", 4)) fprintf(stderr, "misuse: what was downloaded is not there yet\n");
        CALL(cuStreamSynchronize(b));
    }

    // A kernel, on nodes that are there.
    std::ifstream file(arguments[2]);
    std::stringstream ptx;
    ptx << file.rdbuf();
    CALL(cuModuleLoadData(&module, ptx.str().c_str()));
    CALL(cuModuleGetFunction(&census, module, "census"));
    unsigned nodes = is("kernel reads too far") ? 5000 : is("kernel writes too far") ? 8 : 0, n_pools = 2;
    Address words = is("kernel writes too far") ? pools + 96 : pools;
    void* values[] = {&memory, &memory, &nodes, &n_pools, &pools, &words};
    if (is("kernel of freed memory")) CALL(cuMemFree_v2(pools));
    CALL(cuLaunchKernel(census, 1, 1, 1, is("too many threads") ? 512 : 256, 1, 1, 0, a, values, nullptr));
    if (is("unload before launch")) {
        CALL(cuModuleUnload(module));
        CALL(cuLaunchKernel(census, 1, 1, 1, 256, 1, 1, 0, a, values, nullptr));
    }
    if (is("pinned freed in use")) {
        CALL(cuMemcpyHtoDAsync_v2(memory, pinned, BYTES, a));
        CALL(cuMemFreeHost(pinned));
    }
    CALL(cuCtxSynchronize());

    if (!is("leak of memory")) CALL(cuMemFree_v2(memory));
    if (is("double free")) CALL(cuMemFree_v2(memory));
    if (is("copy of freed memory")) CALL(cuMemcpyDtoHAsync_v2(back, memory, BYTES, b));
    CALL(cuMemFree_v2(pools));
    if (!is("leak of pinned memory")) CALL(cuMemFreeHost(pinned));
    CALL(cuModuleUnload(module));
    CALL(cuEventDestroy_v2(event));
    CALL(cuStreamDestroy_v2(a));
    if (!is("leak of a stream")) CALL(cuStreamDestroy_v2(b));
    if (!is("leak of a context")) CALL(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
