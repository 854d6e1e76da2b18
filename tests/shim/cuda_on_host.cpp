// How the threads of cuda_on_host.h run.
#include "cuda_on_host.h"

#include <ucontext.h>

#include <cstring>
#include <map>
#include <vector>

uint4 shared[15 << 10];
dim3 threadIdx, blockIdx, gridDim;

namespace host {

// Fibers take turns millions of times. The C library switches stacks with a system call, for the mask of signals; on x86-64
// six registers are enough, and processors foresee where a function returns that was called.
#ifdef __x86_64__
typedef void** Place;  // where a stack goes on: its top, with what a function has to keep
extern "C" void switch_stacks(Place& from, Place& to);
asm(R"(
switch_stacks:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov (%rsi), %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");

static void stand_ready(Place& place, char* stack, const size_t bytes, void (*enter)()) {
    Place top = reinterpret_cast<Place>(stack + bytes);
    *--top = nullptr;  // nobody called it
    *--top = reinterpret_cast<void*>(enter);
    place = top - 6;
}
#else
typedef ucontext_t Place;

static void switch_stacks(Place& from, Place& to) { swapcontext(&from, &to); }

static void stand_ready(Place& place, char* stack, const size_t bytes, void (*enter)()) {
    getcontext(&place);
    place.uc_stack.ss_sp = stack;
    place.uc_stack.ss_size = bytes;
    place.uc_link = nullptr;
    makecontext(&place, enter, 0);
}
#endif

struct Warp;

// A thread of a block, on a stack that it keeps: where one has ended, that of a later block begins.
struct Fiber {
    Place at;
    dim3 thread;
    unsigned number, lane, barriers;
    bool done;
    Warp* warp;
};

// A copy that a thread has begun, and the group that it belongs to.
struct Copy {
    void* to;
    const void* from;
    int bytes;
    unsigned group;
};
struct Copies {
    std::vector<Copy> under_way;
    unsigned groups;
};

// What raises a flag: bytes that are expected, and those that came. Without a thread that looks, runs are under way.
struct Landing {
    unsigned expected, came;
    std::vector<Copy> under_way;
};

// What the lanes of a warp exchange. Two slots, so that a fast lane cannot overwrite what a slow one still reads.
struct Warp {
    char value[2][32][8];
    int rounds[32];  // operations that each lane has entered
    int round_of[2];  // the operation that a slot holds, and the lanes that have entered it
    unsigned entered[2];
    unsigned alive;
};

// The barriers of a block, in two slots for the same reason.
struct Barriers {
    unsigned number_of[2], entered[2], done;
};

// Not a power of two: caches would have the same few places for the tops of all stacks.
static const size_t STACK_BYTES = (1 << 16) + 5 * 64;
static std::vector<Fiber> all;
static Fiber *first, *running, *behind;  // of the threads of a block
static std::vector<Warp> warps;
static Barriers barriers;
static Place scheduler;
static void (*body)(void**);
static void** arguments;
static std::vector<Copies> copies;  // of each thread; of one where they follow one another
static bool at_once;  // whether copies are
static std::map<const unsigned long long*, Landing> landings;  // of a block
unsigned number, lane;
bool waits, passes;

static Copies& my_copies() { return copies[copies.size() == 1 ? 0 : running->number]; }

// The next thread of the block that is left; behind the last one, what runs the block.
static Place& next() {
    while (++running != behind) {
        if (running->done) continue;
        threadIdx = running->thread;
        lane = running->lane;
        return running->at;
    }
    return scheduler;
}

void yield() {
    Place& mine = running->at;
    switch_stacks(mine, next());
}

static void enter() {
    for (;;) {
        body(arguments);
        running->done = true;
        ++barriers.done;
        running->warp->alive &= ~(1u << lane);
        yield();
    }
}

char (&exchange(const unsigned mask, const void* value, const size_t bytes))[32][8] {
    Warp& warp = *running->warp;
    if (!(mask >> lane & 1) || bytes > 8) abort();
    const int round = ++warp.rounds[lane], slot = round & 1;
    if (warp.round_of[slot] != round) {
        warp.round_of[slot] = round;
        warp.entered[slot] = 0;
    }
    warp.entered[slot] |= 1u << lane;
    std::memcpy(warp.value[slot][lane], value, bytes);
    while (warp.round_of[slot] == round && mask & warp.alive & ~warp.entered[slot]) yield();
    return warp.value[slot];
}

void copy_later(void* to, const void* from, const int bytes) {
    if (at_once) {
        std::memcpy(to, from, bytes);
    } else {
        my_copies().under_way.push_back({to, from, bytes, my_copies().groups});
    }
}

void copies_left(const unsigned groups) {
    std::vector<Copy> later;
    for (const Copy& copy : my_copies().under_way) {
        if (copy.group + groups < my_copies().groups) {
            std::memcpy(copy.to, copy.from, copy.bytes);
        } else {
            later.push_back(copy);
        }
    }
    my_copies().under_way = later;
}

static void raise_if_all_came(unsigned long long* flag, Landing& landing) {
    if (landing.came > landing.expected && landing.expected) abort();
    if (!landing.expected || landing.came < landing.expected) return;
    landing.expected = landing.came = 0;
    ++*flag;
}

void expect(unsigned long long* flag, const unsigned bytes) {
    Landing& landing = landings[flag];
    landing.expected += bytes;  // in a phase that is not complete, too, which is found when the block has ended
    raise_if_all_came(flag, landing);
}

void copy_run(void* to, const void* from, const unsigned bytes, const unsigned long long* flag) {
    landings[flag].under_way.push_back({to, from, static_cast<int>(bytes), 0});
    if (at_once) runs_land(flag);
}

void runs_land(const unsigned long long* flag) {
    const auto found = landings.find(flag);
    if (found == landings.end()) return;
    Landing& landing = found->second;
    for (const Copy& run : landing.under_way) {
        std::memcpy(run.to, run.from, run.bytes);
        landing.came += run.bytes;
    }
    landing.under_way.clear();
    raise_if_all_came(const_cast<unsigned long long*>(flag), landing);
}

// Bytes of runs that are under way or came to a flag that was not raised, when a block has ended.
static size_t not_waited_for() {
    size_t bytes = 0;
    for (const auto& [flag, landing] : landings) {
        bytes += landing.came;
        for (const Copy& run : landing.under_way) bytes += run.bytes;
    }
    landings.clear();
    return bytes;
}

// Gives threads stacks of their own, on which they stand ready.
static void have(const size_t threads) {
    while (all.size() < threads) {
        all.emplace_back();
        stand_ready(all.back().at, static_cast<char*>(aligned_alloc(64, STACK_BYTES)), STACK_BYTES, enter);
    }
}

// Makes the threads of a block ready to run.
static void line_up(const dim3 block, Fiber* from) {
    const unsigned threads = block.x * block.y * block.z;
    first = from;
    behind = first + threads;
    copies.assign(threads, Copies());
    warps.assign((threads + 31) / 32, Warp());
    barriers = Barriers();
    for (unsigned t = 0; t < threads; ++t) {
        Fiber& fiber = first[t];
        fiber.thread = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
        fiber.number = t;
        fiber.lane = t % 32;
        fiber.barriers = 0;
        fiber.done = false;
        fiber.warp = &warps[t / 32];
        fiber.warp->alive |= 1u << fiber.lane;
    }
}

// Runs each thread of the block until it waits for others. Returns whether any is left.
static bool run_once() {
    running = first - 1;
    switch_stacks(scheduler, next());
    return barriers.done < behind - first;
}

static void run_block_as_fibers(const dim3 block) {
    have(block.x * block.y * block.z);
    line_up(block, all.data());
    while (run_once()) {
    }
}

static void run_block_as_loop(const dim3 block) {
    copies.assign(1, Copies());
    for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) body(arguments);
}

static void place_block(const unsigned n) {
    number = n;
    blockIdx = {n % gridDim.x, n / gridDim.x % gridDim.y, n / (gridDim.x * gridDim.y)};
}

struct Block {
    Fiber *first, *behind;
    std::vector<Warp> warps;
    Barriers barriers;
    std::vector<char> shared;
    bool left;
};

// Each block runs until it waits for the others, and leaves its shared memory to the next one meanwhile.
static void run_blocks_together(const std::vector<unsigned>& order, const dim3 threads, const size_t shared_bytes) {
    const size_t of_a_block = threads.x * threads.y * threads.z;
    have(order.size() * of_a_block);
    std::vector<Block> blocks(order.size());
    const char* const untouched = reinterpret_cast<char*>(shared);
    for (size_t n = 0; n < order.size(); ++n) {
        line_up(threads, all.data() + n * of_a_block);
        std::vector<char> own(untouched, untouched + shared_bytes);
        blocks[n] = {first, behind, std::move(warps), barriers, std::move(own), true};
    }
    for (bool any = true, moved = true; any;) {
        if (!moved) abort();  // all wait for ever
        any = moved = false;
        for (size_t n = 0; n < order.size(); ++n) {
            Block& block = blocks[n];
            if (!block.left) continue;
            place_block(order[n]);
            first = block.first;
            behind = block.behind;
            std::swap(barriers, block.barriers);
            std::memcpy(shared, block.shared.data(), shared_bytes);
            for (waits = passes = false; block.left && !waits; moved = moved || passes || !waits) block.left = run_once();
            std::memcpy(block.shared.data(), shared, shared_bytes);
            std::swap(barriers, block.barriers);
            any = any || block.left;
        }
    }
}

size_t run(
    void (*kernel)(void**), const unsigned* grid, const unsigned* block, void** values, const How how,
    const size_t shared_bytes, const bool backwards) {
    body = kernel;
    arguments = values;
    const dim3 threads = {block[0], block[1], block[2]};
    gridDim = {grid[0], grid[1], grid[2]};
    at_once = backwards;
    const unsigned blocks = grid[0] * grid[1] * grid[2];
    std::vector<unsigned> order;
    for (unsigned n = 0; n < blocks; ++n) order.push_back(backwards ? blocks - 1 - n : n);
    std::memset(shared, 0xff, sizeof shared);
    if (how == together) run_blocks_together(order, threads, shared_bytes);
    size_t strayed = 0;
    for (const unsigned n : order) {
        if (how == together) break;
        place_block(n);
        how == as_fibers ? run_block_as_fibers(threads) : run_block_as_loop(threads);
        strayed += not_waited_for();
    }
    for (size_t k = shared_bytes; k < sizeof shared; ++k) strayed += reinterpret_cast<unsigned char*>(shared)[k] != 0xff;
    return strayed;
}

}  // namespace host

void copies_begin() { ++host::my_copies().groups; }

void __syncthreads() {
    const unsigned mine = ++host::running->barriers, slot = mine & 1;
    host::Barriers& all = host::barriers;
    if (all.number_of[slot] != mine) {
        all.number_of[slot] = mine;
        all.entered[slot] = 0;
    }
    ++all.entered[slot];
    while (all.number_of[slot] == mine && all.entered[slot] + all.done < host::behind - host::first) host::yield();
}

unsigned __ballot_sync(const unsigned mask, const bool vote) {
    const unsigned alive = mask & host::running->warp->alive;
    auto& votes = host::exchange(mask, &vote, sizeof vote);
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (alive >> lane & 1 && votes[lane][0]) result |= 1u << lane;
    }
    return result;
}
