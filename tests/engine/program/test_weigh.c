/* Costs of the methods for an item that is alone on the cluster: the sum over their operations against the formulas of
 * the papers. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/program/choice.h"
#include "engine/program/program_builder.h"

static const double relative_tolerance = 1e-12;

static void expect_near(double actual, double expected, const char *what)
{
	cr_expect_float_eq(actual, expected, relative_tolerance * fabs(expected), "%s is %.17g, expected %.17g", what,
			   actual, expected);
}

/* K samples, (M,N) floats, no bias. */
static struct psd_subject matrix(uint32_t K, uint64_t M, uint64_t N)
{
	return (struct psd_subject){.elements = M * N, .rows = M, .columns = N, .batch = K, .value_bytes = 4};
}

static const struct psd_network network = {.bandwidth_bps = 10e9, .payload_ratio = 1, .latency_sec = 50e-6};
static const struct psd_host_costs free_host = {0};

static struct psd_rates free_rates(void)
{
	return psd_rates_make(&free_host, &network, 10e9, 1, 1e12);
}

enum { PS, SFB, ADAM, RING, BY_LEADERS = 1 }; /* the last where nodes have several workers, before SFB */

static uint64_t slice_bytes; /* 0: tensors are whole */

static struct psd_alternative weighed(unsigned candidate, const struct psd_subject *subject,
				      const struct psd_layout *layout, const struct psd_rates *rates)
{
	const struct psd_system system = {.schedule = PSD_SCHEDULE_WAIT_FREE,
					  .sync = PSD_SYNC_PS,
					  .host = *rates->host,
					  .slice_bytes = slice_bytes};
	double backward_sec = 1.0; /* as long as it likes: seconds count from its end */
	const struct psd_costs costs = {.gemm_flops_per_sec = rates->gemm_flops_per_sec,
					.backward_sec = &backward_sec,
					.n_layers = 1,
					.has_own_memory = true};
	struct psd_layer layer = {.backward_flops = 4 * subject->rows * subject->columns};
	const struct psd_graph graph = {.layers = &layer, .n_layers = 1};
	struct psd_prices prices = {.all = NULL};
	struct psd_plan plan = {
		.graph = &graph,
		.prices = &prices,
		.costs = &costs,
		.system = &system,
		.layout = *layout,
		.alone_rates = *rates,
		.value_bytes = subject->value_bytes,
		.wire = &psd_encoding_fp32,
	};
	const struct psd_plan_item item = {.subject = *subject, .travelling = subject->elements};
	struct psd_alternative alternatives[PSD_CANDIDATES];
	struct psd_error err = {.text = ""};

	psd_choice_candidates(&plan);
	cr_assert_eq(psd_choice_weigh(alternatives, &plan, &item, &err), PSD_OK, "%s", err.text);
	psd_prices_release(&prices);
	return alternatives[candidate];
}

static double seconds(unsigned candidate, const struct psd_subject *subject, const struct psd_layout *layout,
		      const struct psd_rates *rates)
{
	return weighed(candidate, subject, layout, rates).isolated_sec;
}

/* ---- bytes: ATC'17 table 1 ---- */

/* P workers and S servers on nodes of their own, or P nodes that are both. */
static uint64_t busiest_values(unsigned candidate, const struct psd_subject *subject, unsigned P, unsigned S)
{
	const struct psd_layout layout = psd_layout_make(P, 1, S);
	const struct psd_rates rates = free_rates();

	return weighed(candidate, subject, &layout, &rates).node_bytes / subject->value_bytes;
}

Test(weigh, worked_example_of_table_1)
{
	const uint64_t M = 4096, N = 4096, K = 32;
	const unsigned P = 8;
	const struct psd_subject subject = matrix((uint32_t)K, M, N);
	const uint64_t ps_both = busiest_values(PS, &subject, P, 0), sfb = busiest_values(SFB, &subject, P, 0);

	cr_expect_eq(ps_both, 2 * M * N * (8 + 8 - 2) / 8);
	cr_expect_eq(sfb, 2 * K * (8 - 1) * (M + N));
	/* as printed, in millions of floats */
	cr_expect_eq((ps_both + 5000) / 10000, 5872);
	cr_expect_eq((sfb + 5000) / 10000, 367);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The larger of a server's entry and a worker's where they are apart. */
Test(weigh, every_entry_of_table_1)
{
	const uint64_t M = 960, N = 480, K = 16; /* every S below divides M N */
	const struct psd_subject subject = matrix((uint32_t)K, M, N);
	const uint64_t factors = K * (M + N);

	for (unsigned P = 1; P <= 10; P++) {
		for (unsigned S = 1; S <= 10; S += S == 6 ? 2 : 1) { /* but 7 */
			cr_expect_eq(busiest_values(PS, &subject, P, S), larger(2 * P * M * N / S, 2 * M * N));
			cr_expect_eq(busiest_values(SFB, &subject, P, S), 2 * (P - 1) * factors);
			cr_expect_eq(busiest_values(ADAM, &subject, P, S), P * M * N + P * factors);
		}
		if (P == 7)
			continue;
		cr_expect_eq(busiest_values(PS, &subject, P, 0), 2 * M * N * (P + P - 2) / P);
		cr_expect_eq(busiest_values(SFB, &subject, P, 0), 2 * (P - 1) * factors);
		cr_expect_eq(busiest_values(ADAM, &subject, P, 0), (P - 1) * (M * N + factors));
		cr_expect_eq(busiest_values(RING, &subject, P, 0), 4 * (P - 1) * M * N / P);
	}
}

/* 10 values on 3 shards are parts of 3, 3 and 4. A server gets its part from each of 4 workers and sends it to them;
 * one of 3 nodes that are both sends the others' parts and twice its own, and receives as much. */
Test(weigh, the_busiest_node_has_the_largest_part)
{
	const struct psd_subject subject = {.elements = 10, .batch = 1, .value_bytes = 4};

	cr_expect_eq(busiest_values(PS, &subject, 4, 3), 2 * 4 * 4);
	cr_expect_eq(busiest_values(PS, &subject, 3, 0), 2 * (3 + 3 + 2 * 4));
}

enum { METHODS = 4 };

static const char *const names[METHODS] = {"ps", "sfb", "adam", "ring"};

/* Latency at the ends of a message counts like more latency of the links. */
Test(weigh, latency_of_the_ends_adds_to_that_of_the_links)
{
	const struct psd_host_costs host = {.latency_sec = 70e-6};
	const struct psd_network raised = {.bandwidth_bps = 10e9, .payload_ratio = 1, .latency_sec = 50e-6 + 70e-6};
	const struct psd_rates rates = psd_rates_make(&host, &network, 10e9, 1, 1e12);
	const struct psd_rates expected = psd_rates_make(&free_host, &raised, 10e9, 1, 1e12);
	const struct psd_subject subject = {.elements = 1024, .rows = 32, .columns = 32, .batch = 1, .value_bytes = 4};

	for (unsigned workers_per_node = 1; workers_per_node <= 2; workers_per_node++) {
		const struct psd_layout layout = psd_layout_make(4, workers_per_node, 0);

		for (unsigned m = 0; m < METHODS; m++)
			expect_near(seconds(m, &subject, &layout, &rates), seconds(m, &subject, &layout, &expected),
				    names[m]);
	}
}

/* ---- seconds: the collective costs that every textbook has; alpha latency, B bytes per second ---- */

static const double alpha = 50e-6;
static const double B = 10e9 / 8;

Test(weigh, ring_takes_its_closed_form)
{
	const struct psd_rates rates = free_rates();
	const struct psd_subject subject = matrix(32, 1680, 1000); /* P from 2 to 8 divide its bytes */
	const double bytes = 4.0 * 1680 * 1000;

	for (unsigned P = 2; P <= 8; P++) {
		const struct psd_layout layout = psd_layout_make(P, 1, 0);
		expect_near(seconds(RING, &subject, &layout, &rates),
			    2 * (P - 1.0) * alpha + 2 * (P - 1.0) / P * bytes / B, "ring");
	}
}

Test(weigh, separate_servers_take_their_closed_form)
{
	const struct psd_rates rates = free_rates();
	const struct psd_subject subject = matrix(32, 1680, 1000);
	const double bytes = 4.0 * 1680 * 1000;

	for (unsigned P = 1; P <= 8; P++)
		for (unsigned S = 1; S <= 8; S++) {
			const struct psd_layout layout = psd_layout_make(P, 1, S);
			expect_near(seconds(PS, &subject, &layout, &rates),
				    fmax(2 * bytes / B, 2 * bytes * P / (S * B)) + 2 * alpha, "parameter server");
		}
}

/* Slices go to servers while earlier ones come back, on other links: one slice more than one direction. Shards on the
 * workers' nodes have the same links for both. */
Test(weigh, slices_come_back_from_separate_servers_while_others_go)
{
	const struct psd_rates rates = free_rates();
	const struct psd_subject subject = matrix(32, 1680, 1000);
	const double bytes = 4.0 * 1680 * 1000;
	const struct psd_layout apart = psd_layout_make(4, 1, 4), both = psd_layout_make(4, 1, 0);

	slice_bytes = 4 * 1680 * 1000 / 8;
	expect_near(seconds(PS, &subject, &apart, &rates), (8 + 1) / 8.0 * bytes / B + 2 * alpha, "apart");
	expect_near(seconds(PS, &subject, &both, &rates), 2 * 3 / 4.0 * bytes / B + 2 * alpha, "both");
	slice_bytes = 0;
}

Test(weigh, shards_on_the_workers_keep_their_own_part)
{
	const struct psd_rates rates = free_rates();
	const struct psd_subject subject = matrix(32, 1680, 1000);
	const double bytes = 4.0 * 1680 * 1000;

	for (unsigned P = 2; P <= 8; P++) {
		const struct psd_layout layout = psd_layout_make(P, 1, 0);
		expect_near(seconds(PS, &subject, &layout, &rates), 2 * (P - 1.0) / P * bytes / B + 2 * alpha,
			    "parameter server");
	}
}

/* N nodes with g workers: the others send to their leader inside the node, the nodes exchange a pair of pushes, and the
 * result goes back. Latency inside nodes differs. */
Test(weigh, leaders_pay_for_both_levels)
{
	const struct psd_network with_inside = {.bandwidth_bps = 10e9,
						.payload_ratio = 1,
						.latency_sec = 50e-6,
						.local_bps = 80e9,
						.local_latency_sec = 5e-6};
	const struct psd_rates rates = psd_rates_make(&free_host, &with_inside, 10e9, 1, 1e12);
	const struct psd_subject subject = matrix(32, 1680, 1000);
	const double bytes = 4.0 * 1680 * 1000;

	for (unsigned N = 1; N <= 8; N++)
		for (unsigned g = 2; g <= 4; g++) {
			const struct psd_layout layout = psd_layout_make(N * g, g, 0);
			const double inside_sec = (g - 1) * bytes / (80e9 / 8) + 5e-6;
			const double between_sec = N == 1 ? 0.0 : (N - 1.0) / N * bytes / B + alpha;

			expect_near(seconds(BY_LEADERS, &subject, &layout, &rates), 2 * (inside_sec + between_sec),
				    "two-level ps");
		}
}

/* Factors to every peer, then a product of (K (P-1)) terms; its own K are no more than backward saves. */
Test(weigh, broadcasting_factors_takes_their_bytes_and_the_rebuild)
{
	const struct psd_rates rates = free_rates();
	const struct psd_subject subject = matrix(32, 1024, 512);
	const double factor_bytes = 4.0 * 32 * (1024 + 512);

	for (unsigned P = 2; P <= 8; P++) {
		const struct psd_layout layout = psd_layout_make(P, 1, 0);
		const double rebuild_sec = 2.0 * 32 * (P - 1) * 1024 * 512 / 1e12;
		expect_near(psd_cost_rebuild_flops(&subject, P - 1), 1e12 * rebuild_sec, "rebuild_flops");
		expect_near(seconds(SFB, &subject, &layout, &rates), (P - 1) * factor_bytes / B + alpha + rebuild_sec,
			    "factors");
	}
}

/* Factors to one node, the matrix from it to every other. */
Test(weigh, adam_pays_for_the_matrix_at_its_root)
{
	const struct psd_rates rates = free_rates();
	const struct psd_subject subject = matrix(32, 1024, 512);
	const double factor_bytes = 4.0 * 32 * (1024 + 512);
	const double matrix_bytes = 4.0 * 1024 * 512;

	for (unsigned P = 2; P <= 8; P++) {
		const struct psd_layout layout = psd_layout_make(P, 1, 0);
		const double rebuild_sec = 2.0 * 32 * (P - 1) * 1024 * 512 / 1e12;
		expect_near(seconds(ADAM, &subject, &layout, &rates),
			    (P - 1) * (factor_bytes + matrix_bytes) / B + 2 * alpha + rebuild_sec, "adam");
	}
}

Test(weigh, the_stack_adds_copies_and_reduction_or_update)
{
	const struct psd_host_costs host = {.copy_bps = 8e9, .reduce_bps = 4e9, .update_bps = 16e9};
	const struct psd_rates rates = psd_rates_make(&host, &network, 10e9, 1, 1e12);
	const struct psd_rates without = free_rates();
	const struct psd_subject subject = matrix(32, 1680, 1000);
	const double bytes = 4.0 * 1680 * 1000;
	const struct psd_layout layout = psd_layout_make(4, 1, 0);
	/* out and in at 1 GB/s; each of the 4 shards sums 4 gradients of a quarter, at 0.5 GB/s */
	const double ps_sec = 2 * bytes / 1e9 + 4 * (bytes / 4) / 0.5e9;
	/* out and in, and applied at 2 GB/s, by the root alone where it sends parameters */
	const double ring_sec = 2 * bytes / 1e9 + bytes / 2e9;
	const double factor_bytes = 4.0 * 32 * (1680 + 1000); /* a worker's; its own go out, three others' come in */
	const double sfb_sec = 4 * factor_bytes / 1e9 + bytes / 2e9;

	expect_near(seconds(PS, &subject, &layout, &rates), seconds(PS, &subject, &layout, &without) + ps_sec,
		    "parameter server");
	expect_near(seconds(RING, &subject, &layout, &rates), seconds(RING, &subject, &layout, &without) + ring_sec,
		    "ring");
	expect_near(seconds(SFB, &subject, &layout, &rates), seconds(SFB, &subject, &layout, &without) + sfb_sec,
		    "factors");
	expect_near(seconds(ADAM, &subject, &layout, &rates),
		    seconds(ADAM, &subject, &layout, &without) + sfb_sec + 2 * bytes / 1e9, "Adam");
}

Test(weigh, one_worker_alone_pays_for_no_network)
{
	const struct psd_rates rates = free_rates();
	const struct psd_subject subject = matrix(32, 1024, 512);
	const struct psd_layout layout = psd_layout_make(1, 1, 0);

	for (unsigned method = 0; method < METHODS; method++)
		cr_expect_eq(seconds(method, &subject, &layout, &rates), 0.0, "%s", names[method]);
}
