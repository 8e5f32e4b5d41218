/* Tags by which clocks and networks report events to an executor. A tag is a number of 64 bits. From the highest bits
 * on: 4 bits for the kind of event, 20 bits for a host or class, and 40 bits for the rest. The rest is a second host,
 * a resource, or a task (16 bits for its iteration, 24 bits for its operation). */
#ifndef PSD_EVENT_TAG_H
#define PSD_EVENT_TAG_H

#include <stdint.h>

#include "engine/program/scheduler.h"

/* Makes a tag from a kind of event (below 16), a host or class (below 2^20) and a rest of 40 bits. */
static inline uint64_t psd_event_tag(unsigned kind, unsigned host, uint64_t rest)
{
	return (uint64_t)kind << 60 | (uint64_t)host << 40 | rest;
}

static inline uint64_t psd_event_tag_of_task(unsigned kind, unsigned host, struct psd_task task)
{
	return psd_event_tag(kind, host, (uint64_t)(task.iteration & 0xffff) << 24 | (task.op & 0xffffff));
}

static inline unsigned psd_event_tag_kind(uint64_t tag)
{
	return (unsigned)(tag >> 60);
}

static inline unsigned psd_event_tag_host(uint64_t tag)
{
	return (unsigned)(tag >> 40 & 0xfffff);
}

static inline uint64_t psd_event_tag_rest(uint64_t tag)
{
	return tag & 0xffffffffff;
}

/* Returns the task of a tag. The iteration in it is the task's iteration modulo 2^16. */
static inline struct psd_task psd_event_tag_task(uint64_t tag)
{
	return (struct psd_task){(uint32_t)(tag >> 24 & 0xffff), (uint32_t)(tag & 0xffffff)};
}

#endif
