/* Keeps, for each device, the sums of finished intervals, and the begin of the interval that runs. */
#include "engine/program/account.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const double rounding_ratio = 1e-10;
/* Workers keep pace if their mean iteration takes at least this part of the slowest worker's. The limit is chosen. */
static const double same_pace_ratio = 0.99;

struct psd_device_time {
	/* sums of finished intervals; other_waiting_sec is not set, as it is the remaining time */
	struct psd_parts sum;
	const struct psd_op *op; /* operation that the device executes; NULL: the device waits */
	double from_sec;	 /* begin of this operation or wait */
	double work_sec;	 /* seconds of work of `op`, at most */
	double slack_sec;	 /* idle time inside operations since the last mark */
	double on_way_sec;	 /* on_way_sec of the account at the begin of the wait */
};

enum psd_status psd_account_init(struct psd_account *account, unsigned n_hosts, uint32_t n_iterations,
				 struct psd_error *err)
{
	*account = (struct psd_account){.n_hosts = n_hosts};
	account->devices = calloc(n_hosts, sizeof(*account->devices));
	account->marks = calloc((size_t)n_hosts * n_iterations, sizeof(*account->marks));
	if (account->devices && account->marks)
		return PSD_OK;
	psd_account_release(account);
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u hosts", n_hosts);
}

void psd_account_release(struct psd_account *account)
{
	free(account->devices);
	free(account->marks);
	*account = (struct psd_account){.devices = NULL};
}

static double on_way_sec(const struct psd_account *account, double now_sec)
{
	return account->on_way_sec + (account->n_on_way > 0 ? now_sec - account->on_way_from_sec : 0.0);
}

/* Returns the sums of a host's device up to now_sec, with the interval that runs. */
static struct psd_parts sum_until(const struct psd_account *account, unsigned host, double now_sec)
{
	const struct psd_device_time *device = &account->devices[host];
	struct psd_parts sum = device->sum;

	if (!device->op)
		sum.exposed_comm_sec += on_way_sec(account, now_sec) - device->on_way_sec;
	else
		*(psd_op_is_compute(device->op) ? &sum.compute_sec : &sum.other_work_sec) +=
			fmin(device->work_sec, now_sec - device->from_sec);
	sum.other_waiting_sec = now_sec - sum.compute_sec - sum.other_work_sec - sum.exposed_comm_sec;
	return sum;
}

/* When several ends are reported late together, later operations were known for less time than they took: the rest is
 * slack that earlier ones left. */
static void take_slack(struct psd_device_time *device, double now_sec)
{
	const double most_sec = now_sec - device->from_sec + device->slack_sec;
	const double worked_sec = fmin(device->work_sec, most_sec);

	device->from_sec = now_sec - worked_sec;
	device->slack_sec = most_sec - worked_sec;
}

static void turn_to(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec)
{
	struct psd_device_time *device = &account->devices[host];

	if (device->op && isfinite(device->work_sec))
		take_slack(device, now_sec);
	*device = (struct psd_device_time){
		.sum = sum_until(account, host, now_sec),
		.op = op,
		.from_sec = now_sec,
		.work_sec = INFINITY,
		.slack_sec = device->slack_sec,
		.on_way_sec = on_way_sec(account, now_sec),
	};
}

/* True if data is on its way while the operation runs. Work of a worker's device is only for its own host; that of a
 * root's device is for all workers. */
static bool is_transfer(const struct psd_op *op)
{
	return op->resource != PSD_RESOURCE_DEVICE || op->where == PSD_WHERE_ROOT;
}

void psd_account_begin(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec)
{
	if (op->resource == PSD_RESOURCE_DEVICE)
		turn_to(account, host, op, now_sec);
	if (is_transfer(op))
		psd_account_depart(account, now_sec);
}

void psd_account_end(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec)
{
	if (op->resource == PSD_RESOURCE_DEVICE)
		turn_to(account, host, NULL, now_sec);
	if (is_transfer(op))
		psd_account_arrive(account, now_sec);
}

void psd_account_worked(struct psd_account *account, unsigned host, double work_sec)
{
	account->devices[host].work_sec = work_sec;
}

void psd_account_depart(struct psd_account *account, double now_sec)
{
	if (account->n_on_way++ == 0)
		account->on_way_from_sec = now_sec;
}

void psd_account_arrive(struct psd_account *account, double now_sec)
{
	assert(account->n_on_way > 0);
	account->on_way_sec = on_way_sec(account, now_sec);
	account->on_way_from_sec = now_sec;
	account->n_on_way--;
}

void psd_account_mark_host(struct psd_account *account, unsigned host, uint32_t iteration, double now_sec)
{
	account->marks[(size_t)iteration * account->n_hosts + host] = sum_until(account, host, now_sec);
	account->devices[host].slack_sec = 0.0;
}

void psd_account_mark(struct psd_account *account, uint32_t iteration, double now_sec)
{
	for (unsigned h = 0; h < account->n_hosts; h++)
		psd_account_mark_host(account, h, iteration, now_sec);
}

void psd_account_skip(struct psd_account *account, uint32_t last, uint32_t unit, uint32_t n_units, double sec)
{
	const struct psd_parts *after = &account->marks[(size_t)last * account->n_hosts];
	const struct psd_parts *before = after - (size_t)unit * account->n_hosts;

	account->n_skipped += n_units * unit;
	account->on_way_from_sec += sec;
	for (unsigned h = 0; h < account->n_hosts; h++) {
		struct psd_device_time *device = &account->devices[h];

		device->from_sec += sec;
		device->sum.compute_sec += n_units * (after[h].compute_sec - before[h].compute_sec);
		device->sum.other_work_sec += n_units * (after[h].other_work_sec - before[h].other_work_sec);
		device->sum.exposed_comm_sec += n_units * (after[h].exposed_comm_sec - before[h].exposed_comm_sec);
	}
}

double psd_parts_sec(const struct psd_parts *parts)
{
	return parts->compute_sec + parts->other_work_sec + parts->exposed_comm_sec + parts->other_waiting_sec;
}

/* Differences of long sums: less than `least` is what rounding leaves of nothing. */
static double mean(double after_sec, double before_sec, double n, double least_sec)
{
	const double sec = (after_sec - before_sec) / n;

	return fabs(sec) < least_sec ? 0.0 : sec;
}

struct psd_parts psd_account_parts(const struct psd_account *account, unsigned host, uint32_t first, uint32_t end)
{
	static const struct psd_parts nothing;
	const struct psd_parts *marks = &account->marks[host], *after = &marks[(size_t)(end - 1) * account->n_hosts];
	const struct psd_parts *before = first > 0 ? &marks[(size_t)(first - 1) * account->n_hosts] : &nothing;
	const double n = end + account->n_skipped - first,
		     least_sec = rounding_ratio * (psd_parts_sec(after) - psd_parts_sec(before)) / n;

	return (struct psd_parts){
		.compute_sec = mean(after->compute_sec, before->compute_sec, n, least_sec),
		.other_work_sec = mean(after->other_work_sec, before->other_work_sec, n, least_sec),
		.exposed_comm_sec = mean(after->exposed_comm_sec, before->exposed_comm_sec, n, least_sec),
		.other_waiting_sec = mean(after->other_waiting_sec, before->other_waiting_sec, n, least_sec),
	};
}

double psd_parts_work_sec(const struct psd_parts *parts)
{
	return parts->compute_sec + parts->other_work_sec;
}

void psd_parts_add(struct psd_parts *sum, const struct psd_parts *parts, double weight)
{
	sum->compute_sec += weight * parts->compute_sec;
	sum->other_work_sec += weight * parts->other_work_sec;
	sum->exposed_comm_sec += weight * parts->exposed_comm_sec;
	sum->other_waiting_sec += weight * parts->other_waiting_sec;
}

struct psd_parts psd_parts_scaled(struct psd_parts parts, double sec)
{
	const double sum_sec = psd_parts_sec(&parts), ratio = sum_sec > 0.0 ? sec / sum_sec : 0.0;

	return (struct psd_parts){parts.compute_sec * ratio, parts.other_work_sec * ratio,
				  parts.exposed_comm_sec * ratio, parts.other_waiting_sec * ratio};
}

void psd_mean_iteration_add(struct psd_mean_iteration *mean, const struct psd_parts *parts, double batch)
{
	const double rate = batch / psd_parts_sec(parts);

	mean->samples += batch;
	mean->samples_per_sec += rate;
	mean->slowest_sec = fmax(mean->slowest_sec, psd_parts_sec(parts));
	psd_parts_add(&mean->weighted, parts, rate);
	if (psd_parts_work_sec(parts) > psd_parts_work_sec(&mean->most_work))
		mean->most_work = *parts;
}

double psd_mean_iteration_sec(struct psd_mean_iteration mean)
{
	return mean.samples / mean.samples_per_sec;
}

struct psd_parts psd_mean_iteration_parts(struct psd_mean_iteration mean)
{
	const double sec = psd_mean_iteration_sec(mean);
	const bool keeps_pace = sec >= same_pace_ratio * mean.slowest_sec;

	return psd_parts_scaled(keeps_pace ? mean.most_work : mean.weighted, sec);
}
