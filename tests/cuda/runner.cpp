// Runs kernels as a script on standard input says, and writes what they leave behind to standard output.
//
//   order forward|reverse
//   buffer <bytes>              followed by as many bytes; buffers are numbered from 0
//   launch <kernel> <grid x> <grid y> <threads> <arguments>, each a word or &<buffer>+<offset in bytes>
//   read <buffer>
//
// A buffer ends where its page ends, and what follows cannot be touched.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <sys/mman.h>

#include "shim.h"

namespace {

struct Buffer {
    char* at;
    size_t bytes;
};

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "runner: %s\n", what.c_str());
    std::exit(1);
}

Buffer new_buffer(size_t bytes) {
    constexpr size_t PAGE = 4096;
    const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    void* mapped = mmap(nullptr, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED || (pages > 0 && mprotect(static_cast<char*>(mapped) + PAGE, pages, PROT_READ | PROT_WRITE))) {
        fail("no memory");
    }
    return {static_cast<char*>(mapped) + PAGE + pages - bytes, bytes};
}

uint64_t value_of(const std::string& word, const shim::Parameter& parameter, const std::vector<Buffer>& buffers) {
    if ((word[0] == '&') != parameter.pointer || parameter.size != (parameter.pointer ? 8 : 4)) {
        fail("argument " + word + " is not what the kernel takes");
    }
    if (word[0] != '&') {
        return std::stoull(word);
    }
    const size_t plus = word.find('+');
    return reinterpret_cast<uint64_t>(buffers.at(std::stoull(word.substr(1, plus - 1))).at + std::stoull(word.substr(plus + 1)));
}

void launch(std::istream& line, const std::vector<Buffer>& buffers, shim::Order order) {
    std::string name, word;
    dim3 grid, block;
    line >> name >> grid.x >> grid.y >> block.x;
    const shim::Entry* entry = shim::find(name);
    if (entry == nullptr) {
        fail("no kernel " + name);
    }
    std::vector<uint64_t> values;
    while (line >> word) {
        if (values.size() == entry->parameters.size()) {
            fail(name + " takes fewer arguments");
        }
        values.push_back(value_of(word, entry->parameters[values.size()], buffers));
    }
    if (values.size() != entry->parameters.size()) {
        fail(name + " takes more arguments");
    }
    std::vector<void*> arguments;
    for (uint64_t& value : values) {
        arguments.push_back(&value);
    }
    const std::string fault = shim::launch(*entry, grid, block, arguments.data(), order);
    if (!fault.empty()) {
        fail(fault);
    }
}

}  // namespace

int main() {
    std::ios::sync_with_stdio(false);
    std::vector<Buffer> buffers;
    shim::Order order = shim::Order::FORWARD;
    std::string text, word;
    while (std::getline(std::cin, text)) {
        std::istringstream line(text);
        line >> word;
        if (word == "order") {
            line >> word;
            order = word == "reverse" ? shim::Order::REVERSE : shim::Order::FORWARD;
        } else if (word == "buffer") {
            size_t bytes = 0;
            line >> bytes;
            buffers.push_back(new_buffer(bytes));
            if (!std::cin.read(buffers.back().at, bytes)) {
                fail("a buffer is cut short");
            }
        } else if (word == "launch") {
            launch(line, buffers, order);
        } else if (word == "read") {
            size_t which = 0;
            line >> which;
            std::cout.write(buffers.at(which).at, buffers.at(which).bytes);
        } else {
            fail("not a command: " + text);
        }
    }
    std::cout.flush();
    return std::cout ? 0 : 1;
}
