/* By what clocks and networks tell an executor what is over: a kind in 4 bits, a host or class in 20, then 40 bits of
 * another one, of a resource, or of a task (iteration in 16, operation in 24). */
#ifndef PSD_COOKIE_H
#define PSD_COOKIE_H

#include <stdint.h>

#include "engine/program/sched.h"

static inline uint64_t psd_cookie(unsigned kind, unsigned host, uint64_t rest)
{
	return (uint64_t)kind << 60 | (uint64_t)host << 40 | rest;
}

static inline uint64_t psd_cookie_of_task(unsigned kind, unsigned host, struct psd_task task)
{
	return psd_cookie(kind, host, (uint64_t)(task.iteration & 0xffff) << 24 | (task.op & 0xffffff));
}

static inline unsigned psd_cookie_kind(uint64_t cookie)
{
	return (unsigned)(cookie >> 60);
}

static inline unsigned psd_cookie_host(uint64_t cookie)
{
	return (unsigned)(cookie >> 40 & 0xfffff);
}

static inline uint64_t psd_cookie_rest(uint64_t cookie)
{
	return cookie & 0xffffffffff;
}

static inline struct psd_task psd_cookie_task(uint64_t cookie)
{
	return (struct psd_task){(uint32_t)(cookie >> 24 & 0xffff), (uint32_t)(cookie & 0xffffff)};
}

#endif
