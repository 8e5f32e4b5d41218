/* The sections of a scenario file, one reader each; what scenario.c, scenario_cluster.c and scenario_systems.c know of
 * each other. Private to them. Every reader reports PSD_EINVAL with a place, and may leave the scenario half filled
 * then. */
#ifndef PSD_SCENARIO_PARTS_H
#define PSD_SCENARIO_PARTS_H

#include "engine/base/arena.h"
#include "engine/document/document.h"
#include "engine/scenario/scenario.h"

struct psd_scenario_reader {
	struct psd_scenario *scenario;
	const struct psd_node *root;
	struct psd_arena *arena; /* for joined paths */
	struct psd_error *err;
};

/* relative, read from a scenario file, as a path that holds from the working directory: below the folder of the
 * scenario. */
enum psd_status psd_scenario_join(const struct psd_scenario_reader *reader, const char *relative,
				  const char **path) PSD_MUST_CHECK;

/* `cluster`, all of it. The sweep must have been read: events name nodes that every sweep point must have. */
enum psd_status psd_scenario_read_cluster(const struct psd_scenario_reader *reader) PSD_MUST_CHECK;
/* One `host` mapping over what *host already holds. */
enum psd_status psd_scenario_read_host(struct psd_host *host, const struct psd_node *mapping,
				       struct psd_error *err) PSD_MUST_CHECK;
/* `systems` and `baseline`; the cluster's host must have been read. */
enum psd_status psd_scenario_read_systems(const struct psd_scenario_reader *reader) PSD_MUST_CHECK;
/* `sweep`; cluster.workers_per_node must have been read. */
enum psd_status psd_scenario_read_sweep(const struct psd_scenario_reader *reader) PSD_MUST_CHECK;
/* `emulation`, and `replay` in `compute`. */
enum psd_status psd_scenario_read_emulation(const struct psd_scenario_reader *reader) PSD_MUST_CHECK;
/* `train`; the seed must have been read. */
enum psd_status psd_scenario_read_train(const struct psd_scenario_reader *reader) PSD_MUST_CHECK;
/* `slow` and `background` below `cluster`; nodes and sweep must have been read. */
enum psd_status psd_scenario_read_events(const struct psd_scenario_reader *reader,
					 const struct psd_node *cluster) PSD_MUST_CHECK;

#endif
