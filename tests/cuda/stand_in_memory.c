/* The stand-in's memory: blocks of the device and pinned blocks of the host, each on pages of its own in one range of
 * addresses that is never used twice. The device's blocks have a protection key of the processor, which opens them to
 * threads that run an operation. On a processor without keys they have no rights: an operation that touches one is
 * stopped, gets it opened and goes on, and blocks are shut when no operation runs. Whoever else touches one, or what is
 * freed, or the page behind a block, ends the process with a message. Refuses to know what operations do. */
#define _GNU_SOURCE
#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/stand_in_parts.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)   ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

/* CUDA's blocks begin at multiples of 256 bytes. Those that its tensors are aligned to are fewer. */
#define ALIGNMENT   UINT64_C(256)
#define ARENA_BYTES (UINT64_C(1) << 38)
/* Blocks are pieces of one file of poison, of which each takes its own pages where they are written: workspaces that
 * nobody writes cost nothing. */
#define PIECE_BYTES (UINT64_C(1) << 20)
/* Reserves addresses without memory. */
#define RESERVING (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
enum { MOST_BLOCKS = 1 << 20, MOST_REGISTERED = 1024 };

enum block_state { BLOCK_DEVICE, BLOCK_PINNED, BLOCK_FREED };

struct block {
	char *pages; /* the first; the last is followed by one that nobody may touch */
	char *begin;
	uint64_t bytes;
	uint64_t pages_bytes;
	_Atomic enum block_state state;
	atomic_bool is_open;
};

struct range {
	const char *begin;
	uint64_t bytes;
};

static char *arena;
static int poison_fd;
static uint64_t arena_used_bytes;
static struct block *blocks; /* in order of their addresses */
static atomic_uint n_blocks;
static atomic_uint *opened; /* blocks to shut */
static atomic_uint n_opened;
static unsigned n_running; /* operations */
static _Thread_local bool is_operation;

static uint64_t total_bytes = UINT64_C(4) << 30;
static uint64_t used_bytes;
static struct range registered[MOST_REGISTERED];
static unsigned n_registered;
static struct sigaction inherited_action;
static int key = -1; /* protection key of the device's blocks; below 0: the processor has none, or none is needed yet */

/* ---- when memory is touched ---- */

/* NULL: no block's pages. No lock: blocks stay where they are. */
static struct block *block_at(const char *address)
{
	unsigned below = 0, behind = atomic_load_explicit(&n_blocks, memory_order_relaxed);

	while (below < behind) {
		const unsigned middle = below + (behind - below) / 2;

		if (blocks[middle].pages + blocks[middle].pages_bytes <= address)
			below = middle + 1;
		else
			behind = middle;
	}
	if (below == atomic_load_explicit(&n_blocks, memory_order_relaxed) || address < blocks[below].pages)
		return NULL;
	return &blocks[below];
}

static void open_block(struct block *block)
{
	const bool was_open = atomic_exchange_explicit(&block->is_open, true, memory_order_relaxed);

	mprotect(block->pages, block->pages_bytes, PROT_READ | PROT_WRITE);
	if (!was_open)
		atomic_store_explicit(&opened[atomic_fetch_add_explicit(&n_opened, 1, memory_order_relaxed)],
				      (unsigned)(block - blocks), memory_order_relaxed);
}

static const char *reason_of(const struct block *block)
{
	if (!block)
		return is_operation ? "an operation touches memory beyond a block" : "memory beyond a block is touched";
	if (atomic_load_explicit(&block->state, memory_order_relaxed) == BLOCK_FREED)
		return is_operation ? "an operation touches freed memory" : "freed memory is touched";
	return "the host touches the device's memory";
}

/* In a handler of signals: no printf. */
static void tell(const char *text)
{
	if (write(STDERR_FILENO, "stand-in: ", 10) < 0 || write(STDERR_FILENO, text, strlen(text)) < 0 ||
	    write(STDERR_FILENO, "\n", 1) < 0)
		return;
}

static void on_touch(int signal_number, siginfo_t *info, void *context)
{
	char *const address = info->si_addr;
	struct block *block;

	(void)context;
	if (arena && address >= arena && address < arena + ARENA_BYTES) {
		block = block_at(address);
		if (is_operation && block &&
		    atomic_load_explicit(&block->state, memory_order_relaxed) == BLOCK_DEVICE) {
			open_block(block);
			return;
		}
		tell(reason_of(block));
	}
	/* The access is repeated, and ends as it would have without a handler. */
	sigaction(signal_number, &inherited_action, NULL);
}

static int make_poison(void)
{
	const int fd = memfd_create("poison", MFD_CLOEXEC);
	void *piece;

	if (fd < 0 || ftruncate(fd, (off_t)PIECE_BYTES) != 0)
		return -1;
	piece = mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (piece == MAP_FAILED)
		return -1;
	memset(piece, PSD_STAND_IN_POISON, PIECE_BYTES);
	munmap(piece, PIECE_BYTES);
	return fd;
}

/* The stand-in keeps all its addresses until the end, so that none is used twice. */
static void reserve(void)
{
	struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO | SA_NODEFER};

	if (arena)
		return;
	poison_fd = make_poison();
	key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
	arena = mmap(NULL, ARENA_BYTES, PROT_NONE, RESERVING, -1, 0);
	blocks = mmap(NULL, MOST_BLOCKS * sizeof(*blocks), PROT_READ | PROT_WRITE, RESERVING, -1, 0);
	opened = mmap(NULL, MOST_BLOCKS * sizeof(*opened), PROT_READ | PROT_WRITE, RESERVING, -1, 0);
	if (poison_fd < 0 || arena == MAP_FAILED || (void *)blocks == MAP_FAILED || (void *)opened == MAP_FAILED ||
	    sigaction(SIGSEGV, &action, &inherited_action) != 0) {
		perror("stand-in");
		abort();
	}
}

void psd_stand_in_open_memory(void)
{
	n_running++;
	is_operation = true;
	if (key >= 0)
		pkey_set(key, 0);
}

void psd_stand_in_close_memory(void)
{
	is_operation = false;
	if (key >= 0)
		pkey_set(key, PKEY_DISABLE_ACCESS);
	if (--n_running > 0)
		return;
	while (atomic_load_explicit(&n_opened, memory_order_relaxed) > 0) {
		const unsigned last = atomic_fetch_sub_explicit(&n_opened, 1, memory_order_relaxed) - 1;
		struct block *const block = &blocks[atomic_load_explicit(&opened[last], memory_order_relaxed)];

		atomic_store_explicit(&block->is_open, false, memory_order_relaxed);
		mprotect(block->pages, block->pages_bytes, PROT_NONE);
	}
}

/* ---- where memory is ---- */

static bool is_within(const char *begin, uint64_t bytes, const char *outer, uint64_t outer_bytes)
{
	return begin >= outer && bytes <= outer_bytes && begin - outer <= (ptrdiff_t)(outer_bytes - bytes);
}

enum psd_stand_in_place psd_stand_in_place_of(const void *begin, uint64_t bytes)
{
	const struct block *block;

	for (unsigned i = 0; i < n_registered; i++)
		if (is_within(begin, bytes, registered[i].begin, registered[i].bytes))
			return PSD_STAND_IN_PINNED;
	if (!arena || (const char *)begin < arena || (const char *)begin >= arena + ARENA_BYTES)
		return PSD_STAND_IN_PAGEABLE;
	block = block_at(begin);
	if (!block || !is_within(begin, bytes, block->begin, block->bytes))
		return PSD_STAND_IN_NOWHERE;
	switch (atomic_load_explicit(&block->state, memory_order_relaxed)) {
	case BLOCK_DEVICE: return PSD_STAND_IN_ON_DEVICE;
	case BLOCK_PINNED: return PSD_STAND_IN_PINNED;
	case BLOCK_FREED: break;
	}
	return PSD_STAND_IN_NOWHERE;
}

bool psd_stand_in_may_touch(const void *begin, uint64_t bytes)
{
	psd_stand_in_lock();
	const enum psd_stand_in_place place = psd_stand_in_place_of(begin, bytes);
	const bool may = place == PSD_STAND_IN_ON_DEVICE || place == PSD_STAND_IN_PINNED;

	if (!may) {
		fprintf(stderr, "stand-in: an operation touches %s\n",
			place == PSD_STAND_IN_PAGEABLE ? "pageable memory of the host" : "memory outside all blocks");
		psd_stand_in_lose(cudaErrorIllegalAddress);
	}
	psd_stand_in_unlock();
	return may;
}

/* ---- taking and giving back ---- */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* Leaves the pages open. */
static void poison_pages(char *pages, uint64_t bytes)
{
	for (uint64_t done_bytes = 0; done_bytes < bytes; done_bytes += PIECE_BYTES) {
		const uint64_t piece_bytes = bytes - done_bytes < PIECE_BYTES ? bytes - done_bytes : PIECE_BYTES;

		if (mmap(pages + done_bytes, piece_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, poison_fd,
			 0) == MAP_FAILED) {
			perror("stand-in");
			abort();
		}
	}
}

/* The block ends where its pages end but for CUDA's alignment, so that what is written behind it is noticed. */
static char *take_block(uint64_t bytes, enum block_state state)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t pages_bytes = round_up(bytes, page_bytes);
	const unsigned number = atomic_load_explicit(&n_blocks, memory_order_relaxed);
	struct block *block;

	reserve();
	assert(number < MOST_BLOCKS && pages_bytes + page_bytes <= ARENA_BYTES - arena_used_bytes);
	block = &blocks[number];
	*block = (struct block){.pages = arena + arena_used_bytes, .bytes = bytes, .pages_bytes = pages_bytes};
	block->begin = block->pages + pages_bytes - round_up(bytes, ALIGNMENT);
	arena_used_bytes += pages_bytes + page_bytes;
	poison_pages(block->pages, pages_bytes);
	ASAN_POISON_MEMORY_REGION(block->pages, pages_bytes);
	ASAN_UNPOISON_MEMORY_REGION(block->begin, bytes);
	if (state == BLOCK_DEVICE && key >= 0)
		pkey_mprotect(block->pages, pages_bytes, PROT_READ | PROT_WRITE, key);
	else if (state == BLOCK_DEVICE)
		mprotect(block->pages, pages_bytes, PROT_NONE);
	atomic_store_explicit(&block->state, state, memory_order_relaxed);
	atomic_store_explicit(&n_blocks, number + 1, memory_order_relaxed);
	return block->begin;
}

/* Queued operations notice that the block is gone: pages that nobody may touch replace its own. The thread sanitiser
 * keeps no shadow for them. The address sanitiser forgets the block, so that the processor reports an access. */
static cudaError_t free_block(const void *begin, enum block_state state)
{
	struct block *const block = arena ? block_at(begin) : NULL;

	if (!block || block->begin != begin || atomic_load_explicit(&block->state, memory_order_relaxed) != state)
		return cudaErrorInvalidValue;
	atomic_store_explicit(&block->state, BLOCK_FREED, memory_order_relaxed);
	if (mmap(block->pages, block->pages_bytes, PROT_NONE, RESERVING | MAP_FIXED, -1, 0) == MAP_FAILED) {
		perror("stand-in");
		abort();
	}
	ASAN_UNPOISON_MEMORY_REGION(block->pages, block->pages_bytes);
	if (state == BLOCK_DEVICE)
		used_bytes -= block->bytes;
	return cudaSuccess;
}

void psd_stand_in_set_memory(uint64_t bytes)
{
	psd_stand_in_lock();
	total_bytes = bytes;
	psd_stand_in_unlock();
}

uint64_t psd_stand_in_total_bytes(void)
{
	return total_bytes;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
	const cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess) {
		*free_bytes = (size_t)(total_bytes > used_bytes ? total_bytes - used_bytes : 0);
		*all_bytes = (size_t)total_bytes;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaMalloc(void **block, size_t bytes)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);

	if (error == cudaSuccess && (used_bytes > total_bytes || bytes > total_bytes - used_bytes))
		error = cudaErrorMemoryAllocation;
	if (error == cudaSuccess)
		*block = bytes == 0 ? NULL : take_block(bytes, BLOCK_DEVICE);
	if (error == cudaSuccess && bytes > 0) {
		used_bytes += bytes;
		psd_stand_in_count.blocks++;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaFree(void *block)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);

	if (block && psd_stand_in_may_release(error)) {
		const cudaError_t freed = free_block(block, BLOCK_DEVICE);

		psd_stand_in_count.blocks -= freed == cudaSuccess;
		error = error == cudaSuccess ? freed : error;
	}
	return psd_stand_in_end(error);
}

static cudaError_t take_host(const char *function, void **block, size_t bytes)
{
	const cudaError_t error = psd_stand_in_begin_unsafe(function);

	if (error == cudaSuccess)
		*block = bytes == 0 ? NULL : take_block(bytes, BLOCK_PINNED);
	if (error == cudaSuccess && bytes > 0)
		psd_stand_in_count.host_blocks++;
	return psd_stand_in_end(error);
}

cudaError_t cudaMallocHost(void **block, size_t bytes)
{
	return take_host(__func__, block, bytes);
}

cudaError_t cudaHostAlloc(void **block, size_t bytes, unsigned flags)
{
	(void)flags; /* portable, mapped and write-combined memory is pinned memory here */
	return take_host(__func__, block, bytes);
}

cudaError_t cudaFreeHost(void *block)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);

	if (block && psd_stand_in_may_release(error)) {
		const cudaError_t freed = free_block(block, BLOCK_PINNED);

		psd_stand_in_count.host_blocks -= freed == cudaSuccess;
		error = error == cudaSuccess ? freed : error;
	}
	return psd_stand_in_end(error);
}

static bool overlap(const char *begin, uint64_t bytes, const struct range *range)
{
	return begin < range->begin + range->bytes && range->begin < begin + bytes;
}

cudaError_t cudaHostRegister(void *begin, size_t bytes, unsigned flags)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);

	(void)flags;
	if (error == cudaSuccess && (!begin || bytes == 0))
		error = cudaErrorInvalidValue;
	for (unsigned i = 0; error == cudaSuccess && i < n_registered; i++)
		if (overlap(begin, bytes, &registered[i]))
			error = cudaErrorHostMemoryAlreadyRegistered;
	if (error == cudaSuccess) {
		assert(n_registered < MOST_REGISTERED);
		registered[n_registered++] = (struct range){begin, bytes};
		psd_stand_in_count.host_blocks++;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaHostUnregister(void *begin)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);
	unsigned i = 0;

	while (i < n_registered && registered[i].begin != begin)
		i++;
	if (psd_stand_in_may_release(error) && i < n_registered) {
		registered[i] = registered[--n_registered];
		psd_stand_in_count.host_blocks--;
	} else if (error == cudaSuccess) {
		error = cudaErrorHostMemoryNotRegistered;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
	const cudaError_t error = psd_stand_in_begin(__func__);
	const enum psd_stand_in_place place = psd_stand_in_place_of(address, 1);

	if (error == cudaSuccess) {
		memset(attributes, 0, sizeof(*attributes));
		attributes->type = place == PSD_STAND_IN_ON_DEVICE ? cudaMemoryTypeDevice
				   : place == PSD_STAND_IN_PINNED  ? cudaMemoryTypeHost
								   : cudaMemoryTypeUnregistered;
		attributes->devicePointer = place == PSD_STAND_IN_PAGEABLE ? NULL : (void *)(uintptr_t)address;
		attributes->hostPointer = place == PSD_STAND_IN_ON_DEVICE ? NULL : (void *)(uintptr_t)address;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess && (flags != 0 || psd_stand_in_place_of(host, 1) != PSD_STAND_IN_PINNED))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		*device = host;
	return psd_stand_in_end(error);
}
