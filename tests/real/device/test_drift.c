/* Drifts of parameters, in numbers with few binary digits. */
#include <criterion/criterion.h>

#include "real/device/update.h"
#include "tests/test_with.h"

enum { N = 5 };

static const float weights[N] = {1.0f, -2.5f, 0.0f, 8.0f, 0.25f}, starts[N] = {2.0f, -2.0f, 0.5f, 8.0f, -1.0f},
		   gradients[N] = {4.0f, -8.0f, 2.0f, 0.0f, 16.0f};

/* All of N elements but the last, which stays. */
static void check_step(enum psd_drift_step step, const float weight[N], const float start[N], const float gradient[N])
{
	float w[N], s[N], g[N];
	const struct psd_drift drift = {
		.step = step, .weight = w, .start = s, .gradient = g, .elements = N - 1, .ratio = 0.25f};

	for (unsigned e = 0; e < N; e++) {
		w[e] = weights[e];
		s[e] = starts[e];
		g[e] = gradients[e];
	}
	psd_drift_take_step(&drift);
	for (unsigned e = 0; e < N; e++) {
		const bool is_last = e == N - 1;

		cr_expect_eq(w[e], is_last ? weights[e] : weight[e], "weight %u is %g", e, (double)w[e]);
		cr_expect_eq(s[e], is_last ? starts[e] : start[e], "start %u is %g", e, (double)s[e]);
		cr_expect_eq(g[e], is_last ? gradients[e] : gradient[e], "gradient %u is %g", e, (double)g[e]);
	}
}

TEST_ROW(drift, begins_with_the_parameters, check_step(PSD_DRIFT_BEGINS, weights, weights, gradients))

/* 2 - 1, -2 + 2.5, 0.5 - 0, 8 - 8 */
TEST_ROW(drift, ends_with_what_they_have_lost,
	 check_step(PSD_DRIFT_ENDS, weights, starts, (const float[N]){1.0f, 0.5f, 0.5f, 0.0f}))

/* 1 - 2, -2.5 + 2, 0 - 0.5, 8 - 8 */
TEST_ROW(drift, parts_from_the_steps_since,
	 check_step(PSD_DRIFT_PARTS, weights, (const float[N]){-1.0f, -0.5f, -0.5f, 0.0f}, gradients))

TEST_ROW(drift, returns_to_the_start, check_step(PSD_DRIFT_RETURNS, starts, starts, gradients))

/* 2 - 4 / 4, -2 + 8 / 4, 0.5 - 2 / 4, 8 - 0 */
TEST_ROW(drift, is_joined_by_a_share_of_the_sum,
	 check_step(PSD_DRIFT_JOINS, (const float[N]){1.0f, 0.0f, 0.0f, 8.0f}, starts, gradients))
