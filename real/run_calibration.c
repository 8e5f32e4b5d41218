/* `psd-run calibrate`: checks the scenario, measures, and prints the table. */
#include "engine/document/document.h"
#include "real/base/console.h"
#include "real/calibrate/calibrate.h"
#include "real/run.h"
#include "real/run_parts.h"

static void print_measuring(void *context, const char *line)
{
	const struct psd_run_options *options = context;

	if (!options->is_quiet)
		psd_console_say("psd-run: measuring %s", line);
}

static enum psd_status calibrate_machine(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_calibrate_options calibrate_options = {
		.costed = &run->costed,
		.device = run->device,
		.point = run->point,
		.cluster_kind = run->cluster_kind,
		.stall_sec = run->options->stall_sec,
		.most_attempts = (unsigned)run->options->n_attempts,
		.output_path = run->options->output_path,
		.version = run->options->version,
		.stop_signal = &psd_console_stop_signal,
		.progress = print_measuring,
		.remark = run->options->is_quiet ? NULL : psd_run_remark,
		.context = (void *)(uintptr_t)run->options,
	};
	struct psd_text table = {.bytes = NULL};
	double spread_ratio;
	enum psd_status status = psd_calibrate(&calibrate_options, &table, &spread_ratio, err);

	if (status) {
		psd_text_release(&table);
		return status;
	}
	status = psd_console_print(&table, err);
	if (!status && spread_ratio > PSD_CALIBRATE_NOISY_RATIO && !run->options->is_quiet)
		psd_console_say(
			"psd-run: this calibration is noisy, its values spread by up to %.0f %%: predictions may "
			"be off by as much. Calibrate again on a quiet machine, where nothing else runs",
			100.0 * spread_ratio);
	return status;
}

/* Several processes would disturb each other's measurements. */
static enum psd_status check_alone(struct psd_error *err)
{
	struct psd_hosts hosts;
	enum psd_status status = PSD_OK;

	PSD_TRY(psd_hosts_launched(&hosts, err));
	if (hosts.n_hosts)
		status = psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				       "mpirun has started %u processes, psd-run calibrate must be the only one",
				       hosts.n_hosts);
	psd_hosts_release(&hosts);
	return status;
}

enum psd_status psd_run_calibration(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    struct psd_error *err)
{
	const struct psd_node *replay = psd_node_child(psd_node_child(scenario->root, "compute"), "replay");
	struct psd_run run = {.options = options, .scenario = scenario};

	if (!scenario->has_train)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				     "has no 'train', which psd-run calibrate needs");
	if (scenario->has_replay)
		return psd_error_set(
			err, PSD_EINVAL, replay->at,
			"'replay' is true, must be false or left out for psd-run calibrate, which measures real "
			"computation, as in 'compute: {device: cpu}'");
	PSD_TRY(check_alone(err));
	PSD_TRY(psd_costed_model_load(&run.costed, scenario, err));
	run.costed.ignores_groups = true; /* this machine is measured at its own speed */
	enum psd_status status = psd_run_check_loss(&run, err);
	if (!status)
		status = psd_run_choose_device(&run, err);
	if (!status)
		status = psd_run_choose_point(scenario, 0, &run.point, err);
	if (!status)
		status = psd_run_check_systems(&run, err);
	if (!status)
		status = psd_run_choose_cluster_kind(&run, err);
	if (!status)
		status = calibrate_machine(&run, err);
	psd_costed_model_release(&run.costed);
	return status;
}
