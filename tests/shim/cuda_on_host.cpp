// How the threads of cuda_on_host.h run.
#include "cuda_on_host.h"

#include <ucontext.h>

#include <cstring>
#include <map>
#include <vector>

uint4 shared[15 << 10];
dim3 threadIdx, blockIdx, gridDim;

namespace host {

// Where a stack goes on. The compiler's own jumps keep no mask of signals and look for no handlers to clean up: fibers
// take turns millions of times.
typedef void* Place[5];

struct Fiber {
    ucontext_t start;
    Place at;
    dim3 thread;
    unsigned number, barriers;
    bool begun, done;
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

static const size_t STACK_BYTES = 1 << 16;
static std::vector<Fiber> fibers;
static std::vector<Warp> warps;
static Barriers barriers;
static std::vector<char> stacks;
static unsigned running;
static Place scheduler;
static ucontext_t back;
static void (*body)(void**);
static void** arguments;
static std::vector<Copies> copies;  // of each thread; of one where they follow one another
static bool at_once;  // whether copies are
static std::map<const unsigned long long*, Landing> landings;  // of a block
unsigned number;
bool waits, passes;

static Fiber& me() { return fibers[running]; }
static Copies& my_copies() { return copies[copies.size() == 1 ? 0 : running]; }
static Warp& my_warp() { return warps[me().number / 32]; }
unsigned my_lane() { return me().number % 32; }

// In a function of its own, as the compiler wants it, and unseen by the one that notes where to come back to.
__attribute__((noipa)) static void go_to(Place& place) { __builtin_longjmp(place, 1); }

__attribute__((noinline)) void yield() {
    if (!__builtin_setjmp(me().at)) go_to(scheduler);
}

static void enter() {
    body(arguments);
    me().done = true;
    ++barriers.done;
    my_warp().alive &= ~(1u << my_lane());
    go_to(scheduler);
}

char (&exchange(const unsigned mask, const void* value, const size_t bytes))[32][8] {
    Warp& warp = my_warp();
    if (!(mask >> my_lane() & 1) || bytes > 8) abort();
    const unsigned lane = my_lane();
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

// Makes the threads of a block ready to run on stacks of their own.
static void line_up(const dim3 block, char* stacks) {
    const unsigned threads = block.x * block.y * block.z;
    fibers.resize(threads);
    copies.assign(threads, Copies());
    warps.assign((threads + 31) / 32, Warp());
    barriers = Barriers();
    for (unsigned t = 0; t < threads; ++t) {
        Fiber& fiber = fibers[t];
        fiber.thread = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
        fiber.number = t;
        fiber.begun = fiber.done = false;
        fiber.barriers = 0;
        warps[t / 32].alive |= 1u << t % 32;
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = stacks + t * STACK_BYTES;
        fiber.start.uc_stack.ss_size = STACK_BYTES;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, enter, 0);
    }
}

// Runs each thread of the block until it waits for others. Returns whether any is left.
__attribute__((noinline)) static bool run_once() {
    volatile bool left = false;
    for (running = 0; running < fibers.size(); ++running) {
        Fiber& fiber = me();
        if (fiber.done) continue;
        left = true;
        threadIdx = fiber.thread;
        if (__builtin_setjmp(scheduler)) continue;
        if (fiber.begun) go_to(fiber.at);
        fiber.begun = true;
        swapcontext(&back, &fiber.start);
    }
    return left;
}

static void run_block_as_fibers(const dim3 block) {
    stacks.resize(block.x * block.y * block.z * STACK_BYTES);
    line_up(block, stacks.data());
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
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Barriers barriers;
    std::vector<char> shared;
    bool left;
};

// Each block runs until it waits for the others, and leaves its shared memory to the next one meanwhile.
static void run_blocks_together(const std::vector<unsigned>& order, const dim3 threads, const size_t shared_bytes) {
    const size_t stack_bytes = threads.x * threads.y * threads.z * STACK_BYTES;
    stacks.resize(order.size() * stack_bytes);
    std::vector<Block> blocks(order.size());
    const char* const untouched = reinterpret_cast<char*>(shared);
    for (size_t n = 0; n < order.size(); ++n) {
        line_up(threads, stacks.data() + n * stack_bytes);
        blocks[n] = {fibers, warps, barriers, std::vector<char>(untouched, untouched + shared_bytes), true};
    }
    for (bool any = true, moved = true; any;) {
        if (!moved) abort();  // all wait for ever
        any = moved = false;
        for (size_t n = 0; n < order.size(); ++n) {
            Block& block = blocks[n];
            if (!block.left) continue;
            place_block(order[n]);
            fibers.swap(block.fibers);
            warps.swap(block.warps);
            std::swap(barriers, block.barriers);
            std::memcpy(shared, block.shared.data(), shared_bytes);
            for (waits = passes = false; block.left && !waits; moved = moved || passes || !waits) block.left = run_once();
            std::memcpy(block.shared.data(), shared, shared_bytes);
            fibers.swap(block.fibers);
            warps.swap(block.warps);
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
    const unsigned mine = ++host::me().barriers, slot = mine & 1;
    host::Barriers& all = host::barriers;
    if (all.number_of[slot] != mine) {
        all.number_of[slot] = mine;
        all.entered[slot] = 0;
    }
    ++all.entered[slot];
    while (all.number_of[slot] == mine && all.entered[slot] + all.done < host::fibers.size()) host::yield();
}

unsigned __ballot_sync(const unsigned mask, const bool vote) {
    const unsigned alive = mask & host::my_warp().alive;
    auto& votes = host::exchange(mask, &vote, sizeof vote);
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (alive >> lane & 1 && votes[lane][0]) result |= 1u << lane;
    }
    return result;
}
