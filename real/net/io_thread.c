/* Two lists and a mutex lie between the event loop and the thread. A job belongs to the side that holds it. */
#define _GNU_SOURCE
#include "real/net/io_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "real/base/affinity.h"
#include "real/net/socket.h"

enum { MAX_EVENTS = 64, READ_ONCE_BYTES = 1 << 18 };

#define COMMAND UINT32_MAX /* in epoll, beside slot numbers */

struct slot {
	struct psd_io_job *send, *read; /* current jobs; NULL: none */
	uint32_t events;		/* watched by epoll; 0: not in it */
	int fd;
};

struct psd_io_thread {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct psd_io_job *given, *over; /* lists, guarded by the mutex; last one first */
	bool has_recalled, is_ending;
	int command_fd, wake_fd, epoll_fd;
	struct slot *slots; /* the thread's, as is the rest */
	unsigned n_slots, processor, n_io_threads;
	uint8_t *scratch;
};

static void write_count(int fd)
{
	const uint64_t one = 1;
	const ssize_t n_written = write(fd, &one, sizeof(one));

	(void)n_written; /* a full counter wakes as well */
}

/* ---- the thread ---- */

/* Watches only what a job waits for: epoll would report an end of connection again and again. Returns false with
 * errno. */
static bool watch(const struct psd_io_thread *io_thread, struct slot *slot)
{
	const uint32_t events = (slot->send ? (uint32_t)EPOLLOUT : 0u) | (slot->read ? (uint32_t)EPOLLIN : 0u);
	struct epoll_event event = {.events = events, .data.u32 = (uint32_t)(slot - io_thread->slots)};
	const int what = events == 0 ? EPOLL_CTL_DEL : slot->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (events == slot->events)
		return true;
	if (epoll_ctl(io_thread->epoll_fd, what, slot->fd, &event) < 0)
		return false;
	slot->events = events;
	return true;
}

/* Returns a job to the loop, which may then close the connection. */
static void end_job(struct psd_io_thread *io_thread, struct slot *slot, struct psd_io_job **place)
{
	struct psd_io_job *job = *place;

	*place = NULL;
	(void)watch(io_thread, slot); /* watching less cannot fail */
	pthread_mutex_lock(&io_thread->mutex);
	job->is_over = true;
	job->next = io_thread->over;
	io_thread->over = job;
	pthread_cond_signal(&io_thread->changed);
	pthread_mutex_unlock(&io_thread->mutex);
	write_count(io_thread->wake_fd);
}

/* Moves bytes; returns as the carrier. */
static ssize_t move(const struct psd_io_thread *io_thread, struct psd_io_job *job)
{
	unsigned n_begun, n_left;
	ssize_t n_moved;

	if (job->out) {
		n_moved = psd_chunk_sender_send(job->out, &job->carrier, NULL, 0, &n_begun, &n_left);
		job->is_complete = n_left > 0;
	} else {
		n_moved = psd_chunk_receiver_read(job->in, &job->carrier, READ_ONCE_BYTES, io_thread->scratch);
		job->is_complete = n_moved > 0 && psd_chunk_receiver_is_complete(job->in);
	}
	if (n_moved > 0)
		atomic_store_explicit(&job->moved_sec, psd_socket_now_sec(), memory_order_relaxed);
	return n_moved;
}

/* Moves bytes until the job ends or would block. */
static void advance(struct psd_io_thread *io_thread, struct slot *slot, struct psd_io_job **place)
{
	struct psd_io_job *job = *place;

	while (*place) {
		const ssize_t n_moved = move(io_thread, job);

		if (n_moved < 0 && errno == EAGAIN)
			return;
		if (n_moved < 0 && errno == EINTR)
			continue;
		job->error_number = n_moved < 0 ? errno : 0;
		if (n_moved <= 0 || job->is_complete)
			end_job(io_thread, slot, place);
	}
}

/* Takes new and recalled jobs. Returns false when the thread is to end. */
static bool take_command(struct psd_io_thread *io_thread)
{
	bool has_recalled, is_ending;
	uint64_t count;
	const ssize_t n_read = read(io_thread->command_fd, &count, sizeof(count));

	(void)n_read;
	pthread_mutex_lock(&io_thread->mutex);
	struct psd_io_job *given = io_thread->given;
	io_thread->given = NULL;
	has_recalled = io_thread->has_recalled;
	io_thread->has_recalled = false;
	is_ending = io_thread->is_ending;
	pthread_mutex_unlock(&io_thread->mutex);
	while (given) {
		struct psd_io_job *job = given;
		struct slot *slot = &io_thread->slots[job->slot];
		struct psd_io_job **place = job->out ? &slot->send : &slot->read;

		given = job->next;
		*place = job;
		slot->fd = job->carrier.fd;
		advance(io_thread, slot, place);
		if (!watch(io_thread, slot) && *place) {
			job->error_number = errno;
			end_job(io_thread, slot, place);
		}
	}
	for (unsigned s = 0; has_recalled && s < io_thread->n_slots; s++) {
		struct slot *slot = &io_thread->slots[s];

		if (slot->send && atomic_load(&slot->send->is_recalled))
			end_job(io_thread, slot, &slot->send);
		if (slot->read && atomic_load(&slot->read->is_recalled))
			end_job(io_thread, slot, &slot->read);
	}
	return !is_ending;
}

static void *carry(void *context)
{
	struct psd_io_thread *io_thread = context;
	bool goes_on = true;

	psd_affinity_pin_to(io_thread->processor, io_thread->n_io_threads);
	while (goes_on) {
		struct epoll_event events[MAX_EVENTS];
		const int n_events = epoll_wait(io_thread->epoll_fd, events, MAX_EVENTS, -1);

		for (int e = 0; e < n_events; e++) {
			struct slot *slot;

			if (events[e].data.u32 == COMMAND) {
				goes_on = take_command(io_thread) && goes_on;
				continue;
			}
			slot = &io_thread->slots[events[e].data.u32];
			if (events[e].events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
				advance(io_thread, slot, &slot->send);
			if (events[e].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				advance(io_thread, slot, &slot->read);
		}
	}
	return NULL;
}

/* ---- the event loop ---- */

static bool fill(struct psd_io_thread *io_thread, unsigned n_slots)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = COMMAND};

	io_thread->n_slots = n_slots;
	io_thread->slots = calloc(n_slots + 1u, sizeof(*io_thread->slots));
	io_thread->scratch = aligned_alloc(64, PSD_CHUNK_RECEIVER_SCRATCH_BYTES);
	io_thread->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	io_thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return io_thread->slots && io_thread->scratch && io_thread->command_fd >= 0 && io_thread->epoll_fd >= 0 &&
	       epoll_ctl(io_thread->epoll_fd, EPOLL_CTL_ADD, io_thread->command_fd, &event) == 0;
}

enum psd_status psd_io_thread_open(struct psd_io_thread **io_thread, unsigned n_slots, unsigned processor,
				   unsigned n_io_threads, int wake_fd, struct psd_error *err)
{
	struct psd_io_thread *opened = calloc(1, sizeof(*opened));

	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an I/O thread");
	opened->command_fd = opened->epoll_fd = -1;
	opened->wake_fd = wake_fd;
	opened->processor = processor;
	opened->n_io_threads = n_io_threads;
	pthread_mutex_init(&opened->mutex, NULL);
	pthread_cond_init(&opened->changed, NULL);
	const int error = fill(opened, n_slots) ? pthread_create(&opened->thread, NULL, carry, opened) : errno;
	opened->has_thread = !error;
	if (error) {
		psd_io_thread_close(opened);
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot start an I/O thread: %s", strerror(error));
	}
	*io_thread = opened;
	return PSD_OK;
}

void psd_io_thread_close(struct psd_io_thread *io_thread)
{
	if (!io_thread)
		return;
	if (io_thread->has_thread) {
		pthread_mutex_lock(&io_thread->mutex);
		io_thread->is_ending = true;
		pthread_mutex_unlock(&io_thread->mutex);
		write_count(io_thread->command_fd);
		pthread_join(io_thread->thread, NULL);
	}
	if (io_thread->command_fd >= 0)
		close(io_thread->command_fd);
	if (io_thread->epoll_fd >= 0)
		close(io_thread->epoll_fd);
	pthread_cond_destroy(&io_thread->changed);
	pthread_mutex_destroy(&io_thread->mutex);
	free(io_thread->slots);
	free(io_thread->scratch);
	free(io_thread);
}

void psd_io_thread_lend(struct psd_io_thread *io_thread, struct psd_io_job *job)
{
	job->state = PSD_IO_JOB_LENT;
	job->error_number = 0;
	job->is_complete = job->is_over = false;
	atomic_store(&job->is_recalled, false);
	pthread_mutex_lock(&io_thread->mutex);
	job->next = io_thread->given;
	io_thread->given = job;
	pthread_mutex_unlock(&io_thread->mutex);
	write_count(io_thread->command_fd);
}

struct psd_io_job *psd_io_thread_take_back(struct psd_io_thread *io_thread)
{
	pthread_mutex_lock(&io_thread->mutex);
	struct psd_io_job *job = io_thread->over;
	if (job)
		io_thread->over = job->next;
	pthread_mutex_unlock(&io_thread->mutex);
	if (job)
		job->state = PSD_IO_JOB_IDLE;
	return job;
}

void psd_io_thread_recall(struct psd_io_thread *io_thread, struct psd_io_job *job)
{
	struct psd_io_job **link = &io_thread->over;

	if (job->state == PSD_IO_JOB_IDLE)
		return;
	pthread_mutex_lock(&io_thread->mutex);
	atomic_store(&job->is_recalled, true);
	io_thread->has_recalled = true;
	write_count(io_thread->command_fd);
	while (!job->is_over)
		pthread_cond_wait(&io_thread->changed, &io_thread->mutex);
	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	pthread_mutex_unlock(&io_thread->mutex);
	job->state = PSD_IO_JOB_IDLE;
}
