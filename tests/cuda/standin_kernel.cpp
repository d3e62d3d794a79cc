// Test double of the CUDA driver: modules and launches. See standin.hpp.
#include "standin.hpp"

#include "shim.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace standin {

// The PTX version that a driver of this version (12080 is 12.8) understands, times ten.
static int ptx_version_of(int driver) {
    int major = driver / 1000, minor = driver % 1000 / 10;
    if (major < 11) return 65;
    if (major == 11) return 70 + minor;
    if (major == 12) return 80 + (minor < 6 ? minor : minor - 1);
    return 90 + minor;
}

// Sizes of parameters, the limit of threads and static shared memory of each entry: all that is read of PTX.
static std::map<std::string, Entry> entries_of(const std::string& ptx) {
    std::map<std::string, Entry> entries;
    for (size_t at = 0; (at = ptx.find(".entry ", at)) != std::string::npos;) {
        size_t open = ptx.find('(', at), close = ptx.find(')', open), body = ptx.find('{', close);
        size_t next = std::min(ptx.find(".entry ", body), ptx.size());
        std::string name = ptx.substr(at + 7, open - at - 7);
        name.erase(std::remove_if(name.begin(), name.end(), [](char c) { return isspace(c); }), name.end());
        Entry entry;
        for (size_t word = open; (word = ptx.find(".param", word)) < close; word += 6) {
            // `.param .u64 name`, or `.param .align 4 .b8 name[12]`.
            size_t end = std::min(ptx.find(',', word), close), bracket = ptx.find('[', word);
            size_t type = ptx.find_first_of("0123456789", word);
            entry.sizes.push_back(bracket < end ? atoi(&ptx[bracket + 1]) : atoi(&ptx[type]) / 8);
        }
        std::string head = ptx.substr(close, body - close), text = ptx.substr(body, next - body);
        for (const char* limit : {".maxntid", ".reqntid"}) {
            size_t found = head.find(limit);
            unsigned x = 1, y = 1, z = 1;
            if (found == std::string::npos) continue;
            sscanf(&head[found + 8], " %u , %u , %u", &x, &y, &z);
            entry.max_threads = x * y * z;
        }
        for (size_t shared = 0; (shared = text.find(".shared .align", shared)) != std::string::npos; shared++) {
            entry.shared_bytes += atoi(&text[text.find('[', shared) + 1]);
        }
        entries[name] = entry;
        at = body;
    }
    return entries;
}

int load_module(Module** out, const char* text) {
    if (world.broken) return world.broken;
    const char* version = text ? strstr(text, ".version ") : nullptr;
    const char* target = version ? strstr(version, ".target sm_") : nullptr;
    int major = 0, minor = 0;
    if (!target || sscanf(version, ".version %d.%d", &major, &minor) != 2) return INVALID_IMAGE;
    if (major * 10 + minor > ptx_version_of(world.driver)) return UNSUPPORTED_PTX_VERSION;
    if (atoi(target + strlen(".target sm_")) > world.capability) return INVALID_PTX;
    *out = new Module{current, entries_of(text)};
    world.modules.insert(*out);
    return SUCCESS;
}

int find_function(Function** out, Module* module, const char* name) {
    auto entry = module->entries.find(name);
    if (entry == module->entries.end()) return NOT_FOUND;
    const shim::Entry* kernel = shim::find(name);
    if (!kernel) {
        complain("kernel %s has no host build", name);
        return NOT_FOUND;
    }
    std::vector<unsigned> sizes;
    for (const shim::Parameter& parameter : kernel->parameters) sizes.push_back(parameter.size);
    if (sizes != entry->second.sizes) {
        complain("kernel %s takes other parameters in the PTX than in the source", name);
        return INVALID_IMAGE;
    }
    *out = new Function{module, kernel, entry->second};
    return SUCCESS;
}

static const char* running = nullptr;

// A kernel that reaches beyond its buffers ends the program, with the name of what it did.
static void on_fault(int, siginfo_t* info, void*) {
    Address at = (Address)info->si_addr;
    const Buffer* beside = nullptr;
    for (auto& [start, buffer] : world.buffers) {
        if (at >= (Address)buffer->pages && at < (Address)buffer->pages + buffer->mapped) beside = buffer;
    }
    fprintf(stderr, "stand-in: illegal address in %s, beside buffer #%d%s\n", running ? running : "the program",
            beside ? beside->number : 0, beside && beside->gone ? ", which is freed" : "");
    _exit(86);
}

static void run_kernel(const Function* function, const unsigned (&grid)[3], const unsigned (&block)[3],
                       std::vector<uint64_t> values, const std::vector<Buffer*>& uses) {
    std::vector<void*> arguments;
    for (uint64_t& value : values) arguments.push_back(&value);
    struct sigaction catching = {}, before;
    catching.sa_sigaction = on_fault;
    catching.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &catching, &before);
    running = function->kernel->name;
    bool reverse = setting("STANDIN_THREADS", "forward") == "reverse";
    dim3 blocks = {grid[0], grid[1], grid[2]}, threads = {block[0], block[1], block[2]};
    shim::Order order = reverse ? shim::Order::REVERSE : shim::Order::FORWARD;
    std::string fault = shim::launch(*function->kernel, blocks, threads, arguments.data(), order);
    running = nullptr;
    sigaction(SIGSEGV, &before, nullptr);
    if (!fault.empty()) {
        complain("%s: %s", function->kernel->name, fault.c_str());
        world.broken = LAUNCH_FAILED;
    }
    for (Buffer* buffer : uses) check_slack(buffer, function->kernel->name);
}

int launch(Function* function, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared_bytes,
           Stream* stream, void** arguments) {
    const char* name = function->kernel->name;
    if (world.trace) fprintf(stderr, "stand-in: launches %s\n", name);
    if (!world.modules.count(function->module)) {
        complain("%s is launched after its module was unloaded", name);
        return INVALID_HANDLE;
    }
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535 || !threads ||
        threads > 1024 || block[2] > 64) {
        complain("%s: a grid of %u x %u x %u blocks of %u x %u x %u threads", name, grid[0], grid[1], grid[2], block[0],
                 block[1], block[2]);
        return INVALID_VALUE;
    }
    if (threads > function->entry.max_threads) {
        complain("%s: %d threads a block, compiled for %u", name, (int)threads, function->entry.max_threads);
        return LAUNCH_OUT_OF_RESOURCES;
    }
    if (shared_bytes + function->entry.shared_bytes > 48 << 10) {
        complain("%s: %u + %u bytes of shared memory", name, shared_bytes, function->entry.shared_bytes);
        return INVALID_VALUE;
    }
    const std::vector<shim::Parameter>& parameters = function->kernel->parameters;
    std::vector<uint64_t> values;
    std::vector<std::pair<Buffer*, bool>> accesses;
    std::vector<Buffer*> uses;
    for (size_t at = 0; at < parameters.size(); at++) {
        const shim::Parameter& parameter = parameters[at];
        uint64_t value = 0;
        memcpy(&value, arguments[at], parameter.size);
        values.push_back(value);
        if (!parameter.pointer || !value) continue;
        Buffer* buffer = device_range(name, value, 0, ("argument " + std::to_string(at)).c_str());
        if (!buffer) {
            world.broken = ILLEGAL_ADDRESS;
            return world.broken;
        }
        accesses.push_back({buffer, parameter.written});
        uses.push_back(buffer);
    }
    Operation operation;
    operation.what = name;
    std::vector<unsigned> sizes(grid, grid + 3);
    sizes.insert(sizes.end(), block, block + 3);
    operation.run = [=] {
        unsigned blocks[3] = {sizes[0], sizes[1], sizes[2]}, of_threads[3] = {sizes[3], sizes[4], sizes[5]};
        run_kernel(function, blocks, of_threads, values, uses);
    };
    put(stream, std::move(operation), accesses);
    return SUCCESS;
}

}  // namespace standin
