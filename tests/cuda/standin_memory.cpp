// Test double of the CUDA driver: buffers and copies. See standin.hpp.
//
// A buffer is poisoned when it is new, ends at a guard page but for the slack that its alignment leaves, which is
// watched, and is unmapped when it is freed. Addresses are never used again.
#include "standin.hpp"

#include <cstring>
#include <sys/mman.h>

namespace standin {

constexpr size_t PAGE = 4096, ALIGNMENT = 256;
constexpr unsigned char POISON = 0xA5, SLACK = 0xC5;

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

int new_buffer(Address* out, size_t bytes, bool pinned) {
    if (!pinned && world.used[current] + bytes > world.memory) return OUT_OF_MEMORY;
    size_t aligned = round_up(bytes, ALIGNMENT), body = round_up(aligned, PAGE), mapped = body + 2 * PAGE;
    void* pages = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return OUT_OF_MEMORY;
    char* first = (char*)pages;
    mprotect(first, PAGE, PROT_NONE);
    mprotect(first + PAGE + body, PAGE, PROT_NONE);
    char* at = first + PAGE + body - aligned;
    memset(at, POISON, bytes);
    memset(at + bytes, SLACK, aligned - bytes);
    if (!pinned) world.used[current] += bytes;
    Buffer* buffer = new Buffer;
    buffer->number = ++world.numbers;
    buffer->device = current;
    buffer->at = (Address)at;
    buffer->bytes = bytes;
    buffer->pages = first;
    buffer->mapped = mapped;
    buffer->pinned = pinned;
    world.buffers[buffer->at] = buffer;
    *out = buffer->at;
    return SUCCESS;
}

Buffer* buffer_to_free(const char* function, Address at, bool pinned) {
    auto found = world.buffers.find(at);
    if (found == world.buffers.end() || found->second->pinned != pinned) {
        complain("%s: this was not allocated", function);
        return nullptr;
    }
    if (found->second->freed) {
        complain("%s: buffer #%d is freed twice", function, found->second->number);
        return nullptr;
    }
    check_slack(found->second, "something");
    return found->second;
}

void unmap(Buffer* buffer) {
    buffer->freed = buffer->gone = true;
    mprotect(buffer->pages, buffer->mapped, PROT_NONE);
    madvise(buffer->pages, buffer->mapped, MADV_DONTNEED);
    if (!buffer->pinned) world.used[buffer->device] -= buffer->bytes;
}

// The buffer that begins at or before an address; the address may be just past its end.
static Buffer* buffer_before(Address at) {
    auto after = world.buffers.upper_bound(at);
    if (after == world.buffers.begin()) return nullptr;
    Buffer* buffer = std::prev(after)->second;
    return at <= buffer->at + buffer->bytes ? buffer : nullptr;
}

Buffer* device_range(const char* function, Address at, size_t bytes, const char* role) {
    Buffer* buffer = buffer_before(at);
    if (!buffer || buffer->pinned || buffer->device != current) {
        complain("%s: the %s is not memory of this device", function, role);
        return nullptr;
    }
    if (buffer->freed) {
        complain("%s: the %s is in buffer #%d, which is freed", function, role, buffer->number);
        return nullptr;
    }
    size_t offset = at - buffer->at;
    if (offset + bytes > buffer->bytes) {
        complain("%s: the %s is %zu bytes at %zu of buffer #%d, which has %zu", function, role, bytes, offset,
                 buffer->number, buffer->bytes);
        return nullptr;
    }
    return buffer;
}

void check_slack(Buffer* buffer, const std::string& who) {
    if (buffer->gone) return;
    unsigned char* end = (unsigned char*)buffer->pages + buffer->mapped - PAGE;
    for (unsigned char* byte = (unsigned char*)buffer->at + buffer->bytes; byte < end; byte++) {
        if (*byte == SLACK) continue;
        complain("%s wrote past the end of buffer #%d of %zu bytes", who.c_str(), buffer->number, buffer->bytes);
        memset(byte, SLACK, end - byte);
    }
}

// Host memory that lies in a pinned buffer.
static Buffer* pinned_buffer(Address at) {
    Buffer* buffer = buffer_before(at);
    return buffer && buffer->pinned && at < buffer->at + buffer->bytes ? buffer : nullptr;
}

int copy(const char* function, Address to, Address from, size_t bytes, Stream* stream, bool to_device,
         bool from_device) {
    if (!bytes) return SUCCESS;
    Buffer* target = to_device ? device_range(function, to, bytes, "destination") : pinned_buffer(to);
    Buffer* source = from_device ? device_range(function, from, bytes, "source") : pinned_buffer(from);
    if ((to_device && !target) || (from_device && !source)) return INVALID_VALUE;
    std::vector<std::pair<Buffer*, bool>> accesses;
    for (auto [buffer, start, writes] : {std::tuple{target, to, true}, std::tuple{source, from, false}}) {
        if (!buffer) continue;
        if (buffer->freed || start + bytes > buffer->at + buffer->bytes) {
            complain("%s: %zu bytes are more than buffer #%d still holds", function, bytes, buffer->number);
            return INVALID_VALUE;
        }
        accesses.push_back({buffer, writes});
    }
    Operation operation;
    operation.what = to_device ? from_device ? "a copy" : "an upload" : "a download";
    if (to_device && !source) {
        // Pageable memory is taken over before the call returns; pinned memory is read when the copy runs.
        auto taken = std::make_shared<std::vector<char>>((char*)from, (char*)from + bytes);
        operation.run = [=] { memcpy((void*)to, taken->data(), bytes); };
    } else {
        operation.run = [=] { memmove((void*)to, (void*)from, bytes); };
    }
    put(stream, std::move(operation), accesses);
    // A download to pageable memory is complete when the call returns.
    return !to_device && !target ? wait_for(stream) : SUCCESS;
}

}  // namespace standin
