// Test double of the CUDA driver: the entry points that the program calls, and no others. See standin.hpp.
#include "standin.hpp"

#include <chrono>
#include <cstring>

using namespace standin;

// The kind is what STANDIN_FAIL can name besides the entry point itself.
#define ENTRY(function, ...) extern "C" __attribute__((visibility("default"))) int function(__VA_ARGS__)
#define BEGIN(kind, need) \
    std::unique_lock<std::recursive_mutex> held(world.lock); \
    if (int code_ = enter(__func__, kind, need)) return code_
#define STREAM(name, handle) \
    Stream* name = stream_of(handle); \
    if (!name) { \
        complain("%s: this is no stream of the current context", __func__); \
        return INVALID_HANDLE; \
    }
#define EVENT(name, handle) \
    if (!world.events.count(handle)) { \
        complain("%s: this is no event", __func__); \
        return INVALID_HANDLE; \
    } \
    Event* name = (Event*)handle

static void* context_of(int device) { return (void*)(uint64_t)(0x1000 + device); }
static bool is_device(int device) { return device >= 0 && device < world.devices; }

static double milliseconds_now() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

// Errors, the driver and its devices.

// Never fails: it is asked about failures.
ENTRY(cuGetErrorString, int code, const char** out) {
    std::unique_lock<std::recursive_mutex> held(world.lock);
    world.counts[__func__]++;
    *out = name_of(code) ? "an error of the test double" : nullptr;
    return *out ? SUCCESS : INVALID_VALUE;
}

ENTRY(cuInit, unsigned) {
    std::unique_lock<std::recursive_mutex> held(world.lock);
    static bool settings_read = false;
    if (!settings_read) read_settings();
    settings_read = true;
    if (int code = enter(__func__, "driver", NOTHING)) return code;
    if (!world.devices) return NO_DEVICE;
    world.initialised = true;
    return SUCCESS;
}

ENTRY(cuDriverGetVersion, int* out) {
    BEGIN("driver", NOTHING);
    *out = world.driver;
    return SUCCESS;
}

ENTRY(cuDeviceGetCount, int* out) {
    BEGIN("device", DRIVER);
    *out = world.devices;
    return SUCCESS;
}

ENTRY(cuDeviceGet, int* out, int ordinal) {
    BEGIN("device", DRIVER);
    *out = ordinal;
    return is_device(ordinal) ? SUCCESS : INVALID_DEVICE;
}

ENTRY(cuDeviceGetName, char* out, int size, int device) {
    BEGIN("device", DRIVER);
    snprintf(out, size, "test double %d", device);
    return is_device(device) ? SUCCESS : INVALID_DEVICE;
}

ENTRY(cuDeviceTotalMem_v2, size_t* out, int device) {
    BEGIN("device", DRIVER);
    *out = world.memory;
    return is_device(device) ? SUCCESS : INVALID_DEVICE;
}

ENTRY(cuDeviceGetAttribute, int* out, int attribute, int device) {
    BEGIN("device", DRIVER);
    if (!is_device(device)) return INVALID_DEVICE;
    switch (attribute) {
        case 16: *out = 4; break;  // multiprocessors
        case 75: *out = world.capability / 10; break;
        case 76: *out = world.capability % 10; break;
        case 115: *out = world.pools; break;
        default: complain("%s: attribute %d is not modelled", __func__, attribute); return INVALID_VALUE;
    }
    return SUCCESS;
}

// Contexts.

ENTRY(cuDevicePrimaryCtxRetain, void** out, int device) {
    BEGIN("context", DRIVER);
    if (!is_device(device)) return INVALID_DEVICE;
    if (world.broken) return world.broken;
    world.retained[device]++;
    *out = context_of(device);
    return SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRelease_v2, int device) {
    BEGIN("free", DRIVER);
    if (!is_device(device) || !world.retained[device]) {
        complain("%s: released more often than retained", __func__);
        return INVALID_CONTEXT;
    }
    if (!--world.retained[device]) wait_for_device(device);
    return SUCCESS;
}

ENTRY(cuCtxGetCurrent, void** out) {
    BEGIN("context", DRIVER);
    *out = current < 0 ? nullptr : context_of(current);
    return SUCCESS;
}

ENTRY(cuCtxSetCurrent, void* context) {
    BEGIN("context", DRIVER);
    int device = context ? (int)((uint64_t)context - 0x1000) : -1;
    if (context && (!is_device(device) || !world.retained[device])) {
        complain("%s: this context is not alive", __func__);
        return INVALID_CONTEXT;
    }
    current = device;
    return SUCCESS;
}

ENTRY(cuCtxSynchronize) {
    BEGIN("wait", CONTEXT);
    return wait_for_device(current);
}

// Streams and events.

ENTRY(cuStreamCreate, void** out, unsigned) {
    BEGIN("stream", CONTEXT);
    *out = new Stream{current, ++world.numbers, {}, 0, 0, {}};
    world.streams.insert(*out);
    return SUCCESS;
}

ENTRY(cuStreamDestroy_v2, void* handle) {
    BEGIN("free", CONTEXT);
    if (!handle) return INVALID_HANDLE;
    STREAM(stream, handle);
    run_until(stream, stream->put);
    world.streams.erase(handle);  // the object stays: clocks name it
    return SUCCESS;
}

ENTRY(cuStreamSynchronize, void* handle) {
    BEGIN("wait", CONTEXT);
    STREAM(stream, handle);
    return wait_for(stream);
}

ENTRY(cuStreamWaitEvent, void* handle, void* event_handle, unsigned) {
    BEGIN("stream", CONTEXT);
    STREAM(stream, handle);
    EVENT(event, event_handle);
    if (!event->recorded) return SUCCESS;
    for (auto& [other, position] : event->known) {
        if (stream->known[other] < position) stream->known[other] = position;
    }
    Operation operation;
    operation.what = "a wait";
    operation.after = event->stream;
    operation.after_position = event->position;
    put(stream, std::move(operation), {});
    return SUCCESS;
}

ENTRY(cuEventCreate, void** out, unsigned flags) {
    BEGIN("event", CONTEXT);
    *out = new Event{current, !(flags & 2), false, nullptr, 0, {}, nullptr};
    world.events.insert(*out);
    return SUCCESS;
}

ENTRY(cuEventDestroy_v2, void* handle) {
    BEGIN("free", CONTEXT);
    EVENT(event, handle);
    world.events.erase(handle);
    delete event;
    return SUCCESS;
}

ENTRY(cuEventRecord, void* handle, void* stream_handle) {
    BEGIN("event", CONTEXT);
    EVENT(event, handle);
    STREAM(stream, stream_handle);
    auto time = std::make_shared<double>(0);
    Operation operation;
    operation.what = "a record";
    operation.run = [time] { *time = milliseconds_now(); };
    put(stream, std::move(operation), {});
    event->recorded = true;
    event->stream = stream;
    event->position = stream->put;
    event->known = stream->known;
    event->milliseconds = time;
    return SUCCESS;
}

ENTRY(cuEventSynchronize, void* handle) {
    BEGIN("wait", CONTEXT);
    EVENT(event, handle);
    return event->recorded ? wait_for(event->stream, event->position, event->known) : world.broken;
}

ENTRY(cuEventElapsedTime, float* out, void* start_handle, void* end_handle) {
    BEGIN("event", CONTEXT);
    EVENT(start, start_handle);
    EVENT(end, end_handle);
    if (!start->timed || !end->timed || !start->recorded || !end->recorded) {
        complain("%s: an event that takes no time, or was never recorded", __func__);
        return INVALID_HANDLE;
    }
    if (start->stream->done < start->position || end->stream->done < end->position) return NOT_READY;
    *out = (float)(*end->milliseconds - *start->milliseconds);
    return SUCCESS;
}

// Memory.

ENTRY(cuMemGetInfo_v2, size_t* free_bytes, size_t* all_bytes) {
    BEGIN("device", CONTEXT);
    *all_bytes = world.memory;
    *free_bytes = world.memory - world.used[current];
    return SUCCESS;
}

ENTRY(cuMemAlloc_v2, Address* out, size_t bytes) {
    BEGIN("alloc", CONTEXT);
    return bytes ? new_buffer(out, bytes, false) : INVALID_VALUE;
}

ENTRY(cuMemAllocAsync, Address* out, size_t bytes, void* handle) {
    BEGIN("alloc", CONTEXT);
    STREAM(stream, handle);
    if (!bytes) {
        complain("%s of no bytes", __func__);
        return INVALID_VALUE;
    }
    if (!world.pools) return NOT_SUPPORTED;
    if (int code = new_buffer(out, bytes, false)) return code;
    Operation operation;
    operation.what = "the allocation";
    put(stream, std::move(operation), {{world.buffers[*out], true}});
    return SUCCESS;
}

// Waits for the device, as the real one does.
ENTRY(cuMemFree_v2, Address at) {
    BEGIN("free", CONTEXT);
    Buffer* buffer = buffer_to_free(__func__, at, false);
    if (!buffer) return INVALID_VALUE;
    int code = wait_for_device(current);
    unmap(buffer);
    return code;
}

ENTRY(cuMemFreeAsync, Address at, void* handle) {
    BEGIN("free", CONTEXT);
    STREAM(stream, handle);
    Buffer* buffer = buffer_to_free(__func__, at, false);
    if (!buffer) return INVALID_VALUE;
    Operation operation;
    operation.what = "the free";
    operation.run = [buffer] { unmap(buffer); };
    put(stream, std::move(operation), {{buffer, true}});
    buffer->freed = true;
    return SUCCESS;
}

ENTRY(cuMemHostAlloc, void** out, size_t bytes, unsigned) {
    BEGIN("pinned", CONTEXT);
    return bytes ? new_buffer((Address*)out, bytes, true) : INVALID_VALUE;
}

ENTRY(cuMemFreeHost, void* at) {
    BEGIN("free", CONTEXT);
    Buffer* buffer = buffer_to_free(__func__, (Address)at, true);
    if (!buffer) return INVALID_VALUE;
    if (buffer->queued) {
        complain("%s: pinned buffer #%d is freed while copies of it are queued", __func__, buffer->number);
        wait_for_device(current);
    }
    unmap(buffer);
    return SUCCESS;
}

ENTRY(cuMemcpyHtoDAsync_v2, Address to, const void* from, size_t bytes, void* handle) {
    BEGIN("copy", CONTEXT);
    STREAM(stream, handle);
    return copy(__func__, to, (Address)from, bytes, stream, true, false);
}

ENTRY(cuMemcpyDtoHAsync_v2, void* to, Address from, size_t bytes, void* handle) {
    BEGIN("copy", CONTEXT);
    STREAM(stream, handle);
    return copy(__func__, (Address)to, from, bytes, stream, false, true);
}

ENTRY(cuMemcpyDtoDAsync_v2, Address to, Address from, size_t bytes, void* handle) {
    BEGIN("copy", CONTEXT);
    STREAM(stream, handle);
    return copy(__func__, to, from, bytes, stream, true, true);
}

ENTRY(cuMemsetD8Async, Address at, unsigned char value, size_t bytes, void* handle) {
    BEGIN("copy", CONTEXT);
    STREAM(stream, handle);
    if (!bytes) return SUCCESS;
    Buffer* buffer = device_range(__func__, at, bytes, "destination");
    if (!buffer) return INVALID_VALUE;
    Operation operation;
    operation.what = "a fill";
    operation.run = [=] { memset((void*)at, value, bytes); };
    put(stream, std::move(operation), {{buffer, true}});
    return SUCCESS;
}

// Modules and launches.

ENTRY(cuModuleLoadData, void** out, const void* image) {
    BEGIN("module", CONTEXT);
    return load_module((Module**)out, (const char*)image);
}

ENTRY(cuModuleUnload, void* module) {
    BEGIN("free", CONTEXT);
    if (!world.modules.erase(module)) {
        complain("%s: this is no module", __func__);
        return INVALID_HANDLE;
    }
    return SUCCESS;
}

ENTRY(cuModuleGetFunction, void** out, void* module, const char* name) {
    BEGIN("module", CONTEXT);
    return world.modules.count(module) ? find_function((Function**)out, (Module*)module, name) : INVALID_HANDLE;
}

ENTRY(cuLaunchKernel, void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
      unsigned block_y, unsigned block_z, unsigned shared_bytes, void* handle, void** arguments, void** extra) {
    BEGIN("launch", CONTEXT);
    STREAM(stream, handle);
    if (extra) return NOT_SUPPORTED;
    const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
    return launch((Function*)function, grid, block, shared_bytes, stream, arguments);
}
