// Test double of the CUDA driver: streams, events, and what has happened before what. See standin.hpp.
//
// Every stream counts its operations, and knows how many of each stream were finished before its next one; so does the
// host, from what it has waited for. Two uses of a buffer of which one writes, with neither known before the other, are
// a race, also when the data came out right.
#include "standin.hpp"

namespace standin {

static void learn(Clock& clock, const Clock& other) {
    for (auto& [stream, position] : other) {
        if (clock[stream] < position) clock[stream] = position;
    }
}

Stream* stream_of(void* handle) {
    if (!handle) return world.default_streams[current];
    if (!world.streams.count(handle) || ((Stream*)handle)->device != current) return nullptr;
    return (Stream*)handle;
}

static void look_for_races(Stream* stream, const Operation& operation, Buffer* buffer, bool writes, uint64_t position) {
    auto before = [&](const Stream* other, uint64_t n) { return other == stream || stream->known[other] >= n; };
    if (world.races && buffer->writer && !before(buffer->writer, buffer->written)) {
        complain("race: %s on stream %d uses buffer #%d, which %s on stream %d writes", operation.what.c_str(),
                 stream->number, buffer->number, buffer->written_by.c_str(), buffer->writer->number);
    }
    if (!writes) {
        buffer->readers[stream] = position;
        return;
    }
    for (auto& [reader, n] : buffer->readers) {
        if (world.races && !before(reader, n)) {
            complain("race: %s on stream %d writes buffer #%d, which stream %d reads", operation.what.c_str(),
                     stream->number, buffer->number, reader->number);
        }
    }
    buffer->writer = stream;
    buffer->written = position;
    buffer->written_by = operation.what;
    buffer->readers.clear();
}

void put(Stream* stream, Operation operation, const std::vector<std::pair<Buffer*, bool>>& accesses) {
    learn(stream->known, world.host);
    uint64_t position = ++stream->put;
    stream->known[stream] = position;
    for (auto& [buffer, writes] : accesses) {
        buffer->queued++;
        operation.uses.push_back(buffer);
        look_for_races(stream, operation, buffer, writes, position);
    }
    stream->queue.push_back(std::move(operation));
    if (world.eager) run_until(stream, stream->put);
}

void run_until(Stream* stream, uint64_t position) {
    while (stream->done < position && !stream->queue.empty()) {
        Operation operation = std::move(stream->queue.front());
        stream->queue.pop_front();
        if (operation.after) run_until(operation.after, operation.after_position);
        for (Buffer* buffer : operation.uses) {
            buffer->queued--;
            if (buffer->gone) {
                complain("%s on stream %d ran after buffer #%d was freed", operation.what.c_str(), stream->number,
                         buffer->number);
                world.broken = ILLEGAL_ADDRESS;
            }
        }
        if (operation.run && !world.broken) operation.run();
        stream->done++;
    }
}

int wait_for(Stream* stream, uint64_t position, const Clock& known) {
    run_until(stream, position);
    learn(world.host, known);
    learn(world.host, {{stream, position}});
    if (world.late && !world.broken) world.broken = world.late;
    return world.broken;
}

int wait_for(Stream* stream) { return wait_for(stream, stream->put, stream->known); }

int wait_for_device(int device) {
    int code = wait_for(world.default_streams[device]);
    for (void* handle : world.streams) {
        Stream* stream = (Stream*)handle;
        if (stream->device == device && !code) code = wait_for(stream);
    }
    return code;
}

}  // namespace standin
