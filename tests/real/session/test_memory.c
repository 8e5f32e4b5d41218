/* How much room a host has for what others send it. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>

#include "real/session/memory.h"
#include "tests/loaded_helper.h"

enum { ON_NODE = 3 }; /* workers */

static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 2}\n"
			       "compute: {device: cpu}\n"
			       "cluster: {nodes: 2, workers_per_node: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: %s}]\n";

/* Elements that a host has of the buffer, of the first item. */
static uint64_t room(const char *sync, unsigned host, enum psd_buffer buffer)
{
	const struct psd_memory_options options = {.host = host};
	struct psd_error err = {.text = ""};
	struct psd_memory memory;
	struct psd_case made;
	struct loaded loaded;
	char text[512];
	uint64_t elements;

	snprintf(text, sizeof(text), scenario, sync);
	loaded_open(&loaded, text);
	loaded_case(&made, &loaded, 0, 0);
	cr_assert_eq(psd_memory_init(&memory, &made.program, &options, &err), PSD_OK, "%s", err.text);
	elements = psd_memory_elements(&memory, 0, buffer);
	psd_memory_release(&memory);
	psd_case_release(&made);
	loaded_close(&loaded);
	return elements;
}

/* Every worker's gradient of its part, or every leader's. */
Test(memory, a_shard_has_room_for_those_it_hears)
{
	cr_expect_gt(room("two-level-ps", 0, PSD_BUFFER_RECEIVED), 0);
	cr_expect_eq(room("ps", 0, PSD_BUFFER_RECEIVED), ON_NODE * room("two-level-ps", 0, PSD_BUFFER_RECEIVED));
	cr_expect_eq(room("two-level-ps", ON_NODE + 1, PSD_BUFFER_RECEIVED), 0);
}

/* Whole items, with gaps between them; others have none. */
Test(memory, a_leader_has_room_for_the_others_of_its_node)
{
	const uint64_t elements = room("two-level-ps", 0, PSD_BUFFER_GRADIENT);

	cr_expect_geq(room("two-level-ps", ON_NODE, PSD_BUFFER_MEMBERS), (ON_NODE - 1) * elements);
	cr_expect_eq(room("two-level-ps", ON_NODE + 1, PSD_BUFFER_MEMBERS), 0);
}
