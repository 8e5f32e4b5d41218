/* Two lists and a mutex lie between the loop and the thread; what an errand is about belongs to whoever has it. */
#define _GNU_SOURCE
#include "real/net/porter.h"

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

#define KICK UINT32_MAX /* in epoll, beside the numbers of slots */

struct slot {
	struct psd_errand *send, *read; /* under way; NULL: none */
	uint32_t events;		/* that epoll watches; 0: the connection is not in it */
	int fd;
};

struct psd_porter {
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct psd_errand *given, *over; /* lists, by the mutex; given: the last one first */
	bool has_recalled, is_ending;
	int kick_fd, wake_fd, epoll_fd;
	struct slot *slots; /* the thread's, as is the rest */
	unsigned n_slots, processor, n_porters;
	uint8_t *scratch;
};

static void write_count(int fd)
{
	const uint64_t one = 1;
	const ssize_t n_written = write(fd, &one, sizeof(one));

	(void)n_written; /* a counter that is full wakes as well */
}

/* ---- the thread ---- */

/* Nothing is watched for nobody: an end would be told again and again. False: errno says why it is not watched. */
static bool watch(const struct psd_porter *porter, struct slot *slot)
{
	const uint32_t events = (slot->send ? (uint32_t)EPOLLOUT : 0u) | (slot->read ? (uint32_t)EPOLLIN : 0u);
	struct epoll_event event = {.events = events, .data.u32 = (uint32_t)(slot - porter->slots)};
	const int what = events == 0 ? EPOLL_CTL_DEL : slot->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (events == slot->events)
		return true;
	if (epoll_ctl(porter->epoll_fd, what, slot->fd, &event) < 0)
		return false;
	slot->events = events;
	return true;
}

/* To the loop, which may close the connection as soon as it has it. */
static void end_errand(struct psd_porter *porter, struct slot *slot, struct psd_errand **place)
{
	struct psd_errand *errand = *place;

	*place = NULL;
	(void)watch(porter, slot); /* to watch less does not fail */
	pthread_mutex_lock(&porter->mutex);
	errand->is_over = true;
	errand->next = porter->over;
	porter->over = errand;
	pthread_cond_signal(&porter->changed);
	pthread_mutex_unlock(&porter->mutex);
	write_count(porter->wake_fd);
}

/* As the carrier. */
static ssize_t move(const struct psd_porter *porter, struct psd_errand *errand)
{
	unsigned n_begun, n_left;
	ssize_t n_moved;

	if (errand->out) {
		n_moved = psd_outlet_send(errand->out, &errand->carrier, NULL, 0, &n_begun, &n_left);
		errand->is_complete = n_left > 0;
	} else {
		n_moved = psd_inflow_read(errand->in, &errand->carrier, READ_ONCE_BYTES, porter->scratch);
		errand->is_complete = n_moved > 0 && psd_inflow_is_complete(errand->in);
	}
	if (n_moved > 0)
		atomic_store_explicit(&errand->moved_sec, psd_socket_now_sec(), memory_order_relaxed);
	return n_moved;
}

/* Until it is over or would have to wait. */
static void advance(struct psd_porter *porter, struct slot *slot, struct psd_errand **place)
{
	struct psd_errand *errand = *place;

	while (*place) {
		const ssize_t n_moved = move(porter, errand);

		if (n_moved < 0 && errno == EAGAIN)
			return;
		if (n_moved < 0 && errno == EINTR)
			continue;
		errand->error_number = n_moved < 0 ? errno : 0;
		if (n_moved <= 0 || errand->is_complete)
			end_errand(porter, slot, place);
	}
}

/* New errands, and those that are to come home. False: all is to end. */
static bool take_kick(struct psd_porter *porter)
{
	struct psd_errand *given;
	bool has_recalled, is_ending;
	uint64_t count;
	const ssize_t n_read = read(porter->kick_fd, &count, sizeof(count));

	(void)n_read;
	pthread_mutex_lock(&porter->mutex);
	given = porter->given;
	porter->given = NULL;
	has_recalled = porter->has_recalled;
	porter->has_recalled = false;
	is_ending = porter->is_ending;
	pthread_mutex_unlock(&porter->mutex);
	while (given) {
		struct psd_errand *errand = given;
		struct slot *slot = &porter->slots[errand->slot];
		struct psd_errand **place = errand->out ? &slot->send : &slot->read;

		given = errand->next;
		*place = errand;
		slot->fd = errand->carrier.fd;
		advance(porter, slot, place);
		if (!watch(porter, slot) && *place) {
			errand->error_number = errno;
			end_errand(porter, slot, place);
		}
	}
	for (unsigned s = 0; has_recalled && s < porter->n_slots; s++) {
		struct slot *slot = &porter->slots[s];

		if (slot->send && atomic_load(&slot->send->is_recalled))
			end_errand(porter, slot, &slot->send);
		if (slot->read && atomic_load(&slot->read->is_recalled))
			end_errand(porter, slot, &slot->read);
	}
	return !is_ending;
}

static void *carry(void *context)
{
	struct psd_porter *porter = context;
	bool goes_on = true;

	psd_affinity_pin_to(porter->processor, porter->n_porters);
	while (goes_on) {
		struct epoll_event events[MAX_EVENTS];
		const int n_events = epoll_wait(porter->epoll_fd, events, MAX_EVENTS, -1);

		for (int e = 0; e < n_events; e++) {
			struct slot *slot;

			if (events[e].data.u32 == KICK) {
				goes_on = take_kick(porter) && goes_on;
				continue;
			}
			slot = &porter->slots[events[e].data.u32];
			if (events[e].events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
				advance(porter, slot, &slot->send);
			if (events[e].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				advance(porter, slot, &slot->read);
		}
	}
	return NULL;
}

/* ---- the loop ---- */

static bool fill(struct psd_porter *porter, unsigned n_slots)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = KICK};

	porter->n_slots = n_slots;
	porter->slots = calloc(n_slots + 1u, sizeof(*porter->slots));
	porter->scratch = aligned_alloc(64, PSD_INFLOW_SCRATCH_BYTES);
	porter->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	porter->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return porter->slots && porter->scratch && porter->kick_fd >= 0 && porter->epoll_fd >= 0 &&
	       epoll_ctl(porter->epoll_fd, EPOLL_CTL_ADD, porter->kick_fd, &event) == 0;
}

enum psd_status psd_porter_open(struct psd_porter **porter, unsigned n_slots, unsigned processor, unsigned n_porters,
				int wake_fd, struct psd_error *err)
{
	struct psd_porter *opened = calloc(1, sizeof(*opened));
	int error;

	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a socket thread");
	opened->kick_fd = opened->epoll_fd = -1;
	opened->wake_fd = wake_fd;
	opened->processor = processor;
	opened->n_porters = n_porters;
	pthread_mutex_init(&opened->mutex, NULL);
	pthread_cond_init(&opened->changed, NULL);
	error = fill(opened, n_slots) ? pthread_create(&opened->thread, NULL, carry, opened) : errno;
	opened->has_thread = !error;
	if (error) {
		psd_porter_close(opened);
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "no socket thread: %s", strerror(error));
	}
	*porter = opened;
	return PSD_OK;
}

void psd_porter_close(struct psd_porter *porter)
{
	if (!porter)
		return;
	if (porter->has_thread) {
		pthread_mutex_lock(&porter->mutex);
		porter->is_ending = true;
		pthread_mutex_unlock(&porter->mutex);
		write_count(porter->kick_fd);
		pthread_join(porter->thread, NULL);
	}
	if (porter->kick_fd >= 0)
		close(porter->kick_fd);
	if (porter->epoll_fd >= 0)
		close(porter->epoll_fd);
	pthread_cond_destroy(&porter->changed);
	pthread_mutex_destroy(&porter->mutex);
	free(porter->slots);
	free(porter->scratch);
	free(porter);
}

void psd_porter_give(struct psd_porter *porter, struct psd_errand *errand)
{
	errand->state = PSD_ERRAND_GIVEN;
	errand->error_number = 0;
	errand->is_complete = errand->is_over = false;
	atomic_store(&errand->is_recalled, false);
	pthread_mutex_lock(&porter->mutex);
	errand->next = porter->given;
	porter->given = errand;
	pthread_mutex_unlock(&porter->mutex);
	write_count(porter->kick_fd);
}

struct psd_errand *psd_porter_take(struct psd_porter *porter)
{
	struct psd_errand *errand;

	pthread_mutex_lock(&porter->mutex);
	errand = porter->over;
	if (errand)
		porter->over = errand->next;
	pthread_mutex_unlock(&porter->mutex);
	if (errand)
		errand->state = PSD_ERRAND_HOME;
	return errand;
}

void psd_porter_recall(struct psd_porter *porter, struct psd_errand *errand)
{
	struct psd_errand **link = &porter->over;

	if (errand->state == PSD_ERRAND_HOME)
		return;
	pthread_mutex_lock(&porter->mutex);
	atomic_store(&errand->is_recalled, true);
	porter->has_recalled = true;
	write_count(porter->kick_fd);
	while (!errand->is_over)
		pthread_cond_wait(&porter->changed, &porter->mutex);
	while (*link != errand)
		link = &(*link)->next;
	*link = errand->next;
	pthread_mutex_unlock(&porter->mutex);
	errand->state = PSD_ERRAND_HOME;
}
