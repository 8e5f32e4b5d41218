/* Prices are what the cost functions say, found once. */
#include <criterion/criterion.h>

#include "engine/cost/prices.h"
#include "tests/engine/cost/cost_helper.h"

static const struct psd_host_costs host = {.collective = {{.call_sec = 1e-3, .slowdown_ratio = 2.0}},
					   .n_collective_classes = 1};
static const struct psd_network network = {.latency_sec = 1e-5, .payload_ratio = 1.0, .local_bps = 4e9};

Test(prices, are_what_the_cost_functions_say)
{
	const struct psd_layout layout = psd_layout_make(12, 4, 0);
	const struct psd_rates rates = psd_rates_make(&host, &network, 1e9, 1, 1e12);
	struct psd_prices prices = {.all = NULL};

	for (unsigned turn = 0; turn < 2; turn++)
		for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++)
			for (unsigned elements = 100; elements < 200; elements += 10) {
				const struct psd_payload payload = {
					.collective = psd_all_reduces[p], .elements = elements, .value_bytes = 4};
				struct psd_price *price = psd_prices_of(&prices, &payload, &layout, &rates);
				double transfer_sec, delay_sec;

				cr_assert_not_null(price);
				cost_of_collective(&payload, &layout, &rates, &transfer_sec, &delay_sec);
				cr_expect_eq(price->transfer_sec, transfer_sec);
				cr_expect_eq(price->delay_sec, delay_sec);
			}
	cr_expect_eq(prices.n, 10 * PSD_N_ALL_REDUCES, "equal payloads have one price: %u", prices.n);
	psd_prices_release(&prices);
}

/* A ring's node sends and receives two shares less two of the 12 chunks, 2 * 11 / 12 of 1200 elements. */
Test(prices, know_the_busiest_node)
{
	const struct psd_layout layout = psd_layout_make(12, 4, 0);
	const struct psd_rates rates = psd_rates_make(&host, &network, 1e9, 1, 1e12);
	const struct psd_payload payload = {.collective = &psd_ring, .elements = 1200, .value_bytes = 4};
	struct psd_prices prices = {.all = NULL};
	struct psd_price *price = psd_prices_of(&prices, &payload, &layout, &rates);

	cr_assert_not_null(price);
	for (unsigned turn = 0; turn < 2; turn++)
		cr_expect_eq(psd_price_node_bytes(price, &layout), 2 * 4 * 2 * 1200 * 11 / 12);
	psd_prices_release(&prices);
}

/* A price belongs to a group of workers, too. */
Test(prices, differ_between_groups)
{
	const struct psd_layout layout = psd_layout_make(12, 4, 0);
	const struct psd_rates rates = psd_rates_make(&host, &network, 1e9, 1, 1e12);
	struct psd_payload payload = {.collective = &psd_ring, .elements = 1200, .value_bytes = 4, .group = {0, 1, 4}};
	struct psd_prices prices = {.all = NULL};
	const struct psd_price *inside = psd_prices_of(&prices, &payload, &layout, &rates);

	cr_assert_not_null(inside);
	const double inside_sec = inside->transfer_sec;
	payload.group = (struct psd_group){0, 4, 3};
	const struct psd_price *between = psd_prices_of(&prices, &payload, &layout, &rates);
	cr_assert_not_null(between);
	cr_expect_eq(between->transfer_sec, cost_of_transfer_sec(&payload, &layout, &rates));
	cr_expect_neq(between->transfer_sec, inside_sec);
	psd_prices_release(&prices);
}
