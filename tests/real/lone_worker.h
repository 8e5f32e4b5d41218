/* A worker in the test's process, without connections: tests execute single operations of its program. */
#ifndef LONE_WORKER_H
#define LONE_WORKER_H

#include <criterion/criterion.h>

#include "engine/case/case.h"
#include "real/session/worker_parts.h"

/* Makes worker `memory.host` of the case and its memory, with the parameters of seed 1. Pointers are borrowed. */
static inline void lone_worker_make(struct psd_worker *worker, struct psd_worker_options *options,
				    const struct psd_case *made, struct psd_memory_options memory,
				    uint32_t global_batch)
{
	struct psd_error err = {.text = ""};

	*worker = (struct psd_worker){.host = {.options = options,
					       .program = &made->program,
					       .plan = &made->plan,
					       .layout = &made->plan.layout,
					       .graph = made->plan.graph,
					       .self = memory.host,
					       .kind = &psd_device_cpu,
					       .on_device = &worker->host.memory,
					       .global_batch = global_batch},
				      .work.host = &worker->host};
	cr_assert_eq(psd_memory_init(&worker->host.memory, worker->host.program, &memory, &err), PSD_OK, "%s",
		     err.text);
	psd_memory_fill_parameters(&worker->host.memory, 1);
}

#endif
