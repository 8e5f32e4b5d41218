#include <criterion/criterion.h>

#include "real/net/link_model.h"

#define TOLERANCE_SEC 1e-12
#define BPS	      8e6 /* a megabyte takes a second */
#define MEGABYTE      UINT64_C(1000000)
#define LATENCY_SEC   0.25

/* A function, for the macro would ask its arguments more than once. */
static void check_sec(double sec, double expected_sec)
{
	cr_assert_float_eq(sec, expected_sec, TOLERANCE_SEC);
}

static struct psd_pace both_ways(void)
{
	return (struct psd_pace){.send_bps = BPS, .receive_bps = BPS};
}

/* 2 MB at 10 s leave until 12 s; 1 MB at 11 s waits for them: 13 s; 1 MB at 20 s finds the line idle: 21 s. */
Test(pace, a_line_out_carries_one_message_behind_the_other)
{
	struct psd_pace pace = both_ways();

	check_sec(psd_pace_send(&pace, 2 * MEGABYTE, 10.0), 12.0);
	check_sec(psd_pace_send(&pace, MEGABYTE, 11.0), 13.0);
	check_sec(psd_pace_send(&pace, MEGABYTE, 20.0), 21.0);
}

/* The incoming link does not delay messages that one sender's link has spaced: each arrives a latency later. */
Test(pace, one_sender_waits_for_its_own_line_only)
{
	struct psd_pace sender = both_ways(), receiver = both_ways();

	for (unsigned i = 0; i < 5; i++) {
		const double off_sec = psd_pace_send(&sender, MEGABYTE, 10.0 + 1.5 * (i / 2));

		check_sec(psd_pace_receive(&receiver, MEGABYTE, off_sec, LATENCY_SEC), off_sec + LATENCY_SEC);
	}
}

/* Three lines each carry 1 MB from 10 s to 11 s to one host, whose own takes three times as long: 11, 12, 13 s and the
 * latency. */
Test(pace, several_senders_share_the_line_in)
{
	struct psd_pace pace = both_ways();

	for (unsigned i = 0; i < 3; i++)
		check_sec(psd_pace_receive(&pace, MEGABYTE, 11.0, LATENCY_SEC), 11.0 + i + LATENCY_SEC);
	/* idle since 13.25 s: a message that leaves from 20 s to 21 s waits for nobody */
	check_sec(psd_pace_receive(&pace, MEGABYTE, 21.0, LATENCY_SEC), 21.0 + LATENCY_SEC);
}

/* 4 MB begin at 10 s, 1 MB at 12 s is complete first. Together they are 5 s of the line since 10 s, not since 12 s. */
Test(pace, a_long_message_that_began_earlier_counts_from_its_beginning)
{
	struct psd_pace pace = both_ways();

	check_sec(psd_pace_receive(&pace, MEGABYTE, 13.0, 0.0), 13.0);
	check_sec(psd_pace_receive(&pace, 4 * MEGABYTE, 14.0, 0.0), 15.0);
}

/* A line in at half the rate: 2 s for a megabyte. */
Test(pace, a_slower_line_in_takes_longer_than_the_line_out)
{
	struct psd_pace pace = {.send_bps = BPS, .receive_bps = BPS / 2};

	check_sec(psd_pace_receive(&pace, MEGABYTE, 11.0, LATENCY_SEC), 12.0 + LATENCY_SEC);
}
