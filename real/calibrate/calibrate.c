/* The order of measurements. All are made once before any is repeated, so that attempts at one lie minutes apart. */
#include "real/calibrate/calibrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/output.h"
#include "real/base/affinity.h"
#include "real/base/libraries.h"
#include "real/calibrate/calibrate_parts.h"
#include "real/cluster/process_group.h"

#define CALM_RATIO    0.05 /* a spread that needs no further attempt */
#define SURE_ATTEMPTS 2	   /* made at any spread: a value that drifts over minutes is calm for seconds */

struct step {
	const char *words;
	enum psd_status (*measure)(struct psd_calibration *calibration, struct psd_error *err);
	enum psd_quantity first, last; /* quantities whose spread decides on another attempt */
};

static const struct step steps[] = {
	{"layers", psd_calibrate_layers, PSD_QUANTITY_LAYERS_SEC, PSD_QUANTITY_REBUILD},
	{"training without messages", psd_calibrate_beside, PSD_QUANTITY_BESIDE_SEC, PSD_QUANTITY_BESIDE_SEC},
	{"reductions and updates", psd_calibrate_host, PSD_QUANTITY_REDUCE_BPS, PSD_QUANTITY_UPDATE_BPS},
	{"copies and updates of the device", psd_calibrate_device, PSD_QUANTITY_UPDATE_BPS, PSD_QUANTITY_COPY_BPS},
	{"messages without a limit", psd_calibrate_transport, PSD_QUANTITY_TRANSPORT_BPS, PSD_QUANTITY_TRANSPORT_BPS},
	{"messages on the link", psd_calibrate_link, PSD_QUANTITY_PAYLOAD_RATIO, PSD_QUANTITY_LATENCY_SEC},
	{"several senders", psd_calibrate_crowds, PSD_QUANTITY_INCAST_RATIO, PSD_QUANTITY_INCAST_RATIO},
	{"messages inside a node", psd_calibrate_local, PSD_QUANTITY_LOCAL_BPS, PSD_QUANTITY_LOCAL_LATENCY_SEC},
	{"processors for messages", psd_calibrate_message, PSD_QUANTITY_MESSAGE_SEC, PSD_QUANTITY_MESSAGE_SEC},
	{"processors for bytes", psd_calibrate_bytes, PSD_QUANTITY_BYTES_BPS, PSD_QUANTITY_BYTES_BPS},
};

static bool is_calm(const struct psd_calibration *calibration, const struct step *step)
{
	for (unsigned q = step->first; q <= step->last; q++)
		if (calibration->measured[q].is_there &&
		    psd_calibrate_spread_ratio(&calibration->measured[q]) > CALM_RATIO)
			return false;
	return true;
}

/* A device that works in its host's memory copies nothing, and a lone worker of a node sends nothing inside it. */
static bool applies(const struct psd_calibration *calibration, const struct step *step)
{
	if (step->measure == psd_calibrate_device)
		return calibration->options->device->has_own_memory;
	return step->measure != psd_calibrate_local || calibration->options->point.workers_per_node > 1;
}

static void report_progress(const struct psd_calibration *calibration, const struct step *step, unsigned attempt)
{
	const char *turn = attempt == 0 ? "" : attempt < SURE_ATTEMPTS ? ", a second time" : ", again: they spread";
	char line[128];

	snprintf(line, sizeof(line), "%s%s", step->words, turn);
	if (calibration->options->progress)
		calibration->options->progress(calibration->options->context, line);
}

static enum psd_status measure(struct psd_calibration *calibration, struct psd_error *err)
{
	for (unsigned attempt = 0; attempt < calibration->options->most_attempts; attempt++)
		for (unsigned s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
			if (!applies(calibration, &steps[s]) ||
			    (attempt >= SURE_ATTEMPTS && is_calm(calibration, &steps[s])))
				continue;
			report_progress(calibration, &steps[s], attempt);
			PSD_TRY(steps[s].measure(calibration, err));
		}
	return PSD_OK;
}

/* Devices with their own memory are those of one node: in a cluster, other nodes have their own. */
static unsigned count_busy(const struct psd_calibrate_options *options, unsigned cores)
{
	struct psd_error why;
	const unsigned n_devices = options->device->has_own_memory ? options->device->count(&why) : cores;
	const unsigned workers =
		options->device->has_own_memory ? options->point.workers_per_node : options->point.workers;

	return workers < n_devices ? workers : n_devices;
}

static enum psd_status open_calibration(struct psd_calibration *calibration,
					const struct psd_calibrate_options *options, struct psd_error *err)
{
	const unsigned n_layers = options->costed->graph.n_layers, cores = psd_affinity_count();

	*calibration = (struct psd_calibration){
		.options = options,
		.cores = cores,
		.n_busy = count_busy(options, cores),
		.device_text = psd_process_group_share(PSD_DEVICE_TEXT_MAX),
		.forward_sec = calloc(n_layers, sizeof(double)),
		.backward_sec = calloc(n_layers, sizeof(double)),
	};
	if (calibration->forward_sec && calibration->backward_sec && calibration->device_text)
		return PSD_OK;
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a calibration");
}

enum psd_status psd_calibrate(const struct psd_calibrate_options *options, struct psd_text *table, double *spread_ratio,
			      struct psd_error *err)
{
	struct psd_calibration calibration;

	PSD_TRY(options->device->has_own_memory ? PSD_OK : psd_libraries_need(PSD_LIBRARY_ONEDNN, err));
	enum psd_status status = open_calibration(&calibration, options, err);
	if (!status)
		status = psd_calibrate_open(&calibration, err);
	if (!status)
		status = measure(&calibration, err);
	if (!status)
		status = psd_calibrate_write(&calibration, err);
	if (!status) {
		psd_calibrate_add_table(table, &calibration);
		*spread_ratio = psd_calibrate_worst_spread_ratio(&calibration);
	}
	psd_outputs_discard();
	free(calibration.forward_sec);
	free(calibration.backward_sec);
	psd_process_group_unshare(calibration.device_text, PSD_DEVICE_TEXT_MAX);
	return status;
}
