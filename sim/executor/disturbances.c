/* Disturbances of a cluster: nodes and links that are slow for a time, and background traffic. */
#include <math.h>

#include "sim/executor/simulation.h"

static double compute_speed_ratio(const struct psd_simulation *sim, unsigned node, double at_sec, double *until_sec)
{
	double speed_ratio = 1.0;
	*until_sec = INFINITY;
	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++) {
		const struct psd_slowdown *slowdown = &sim->scenario->slowdowns[i];
		if (slowdown->node != node || at_sec >= slowdown->until_sec)
			continue;
		const bool is_on = at_sec >= slowdown->from_sec;
		speed_ratio *= is_on ? slowdown->compute_ratio : 1.0;
		*until_sec = fmin(*until_sec, is_on ? slowdown->until_sec : slowdown->from_sec);
	}
	return speed_ratio;
}

double psd_sim_slowed_sec(const struct psd_simulation *sim, unsigned node, double sec)
{
	const double start_sec = psd_network_now_sec();
	double at_sec = start_sec;
	for (;;) {
		double until_sec;
		const double speed_ratio = compute_speed_ratio(sim, node, at_sec, &until_sec);
		if (at_sec + sec / speed_ratio <= until_sec)
			return at_sec + sec / speed_ratio - start_sec;
		sec -= (until_sec - at_sec) * speed_ratio;
		at_sec = until_sec;
	}
}

void psd_sim_apply_links(const struct psd_simulation *sim, unsigned node)
{
	const double now_sec = psd_network_now_sec();
	double link_ratio = 1.0;
	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++) {
		const struct psd_slowdown *slowdown = &sim->scenario->slowdowns[i];
		if (slowdown->node == node && now_sec >= slowdown->from_sec && now_sec < slowdown->until_sec)
			link_ratio *= slowdown->link_ratio;
	}
	psd_network_scale_link(node, link_ratio);
}

static void send_background(const struct psd_simulation *sim, unsigned index)
{
	const struct psd_background *background = &sim->scenario->backgrounds[index];
	psd_network_transfer(psd_layout_first(sim->layout, background->from_node),
			     psd_layout_first(sim->layout, background->to_node), background->bytes,
			     psd_event_tag(PSD_WAKE_BACKGROUND_SENT, index, 0));
}

/* Each transfer of a background entry waits for the end of the previous one. Otherwise transfers would pile up on a
 * link that is too slow for them, and leave nothing for all other transfers. */
void psd_sim_background_due(struct psd_simulation *sim, unsigned index)
{
	const double period_sec = sim->scenario->backgrounds[index].period_sec;
	if (sim->n_due[index]++ == 0)
		send_background(sim, index);
	if (period_sec > 0.0)
		psd_network_timer(period_sec, psd_event_tag(PSD_WAKE_BACKGROUND_DUE, index, 0));
}

void psd_sim_background_sent(struct psd_simulation *sim, unsigned index)
{
	if (sim->scenario->backgrounds[index].period_sec == 0.0 || --sim->n_due[index] > 0)
		send_background(sim, index);
}

void psd_sim_start_disturbances(struct psd_simulation *sim)
{
	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++) {
		const struct psd_slowdown *slowdown = &sim->scenario->slowdowns[i];
		psd_network_timer(slowdown->from_sec, psd_event_tag(PSD_WAKE_LINK, slowdown->node, 0));
		if (isfinite(slowdown->until_sec))
			psd_network_timer(slowdown->until_sec, psd_event_tag(PSD_WAKE_LINK, slowdown->node, 0));
	}
	for (unsigned i = 0; i < sim->scenario->n_backgrounds; i++)
		psd_sim_background_due(sim, i);
}
