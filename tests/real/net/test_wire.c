/* Headers and small payloads: layout, round trips, and what is refused. */
#include <criterion/criterion.h>
#include <string.h>

#include "real/net/wire.h"

static const struct psd_wire_head example = {PSD_WIRE_DATA, 0x01020304, 0x11121314,
					     0x21222324,    0x41424344, UINT64_C(0x3132333435363738)};

Test(wire, header_is_little_endian_and_has_no_gaps)
{
	static const uint8_t expected[PSD_WIRE_HEAD_BYTES] = {
		'P',
		'S',
		'D',
		'W', /* magic */
		PSD_WIRE_VERSION,
		0,
		PSD_WIRE_DATA,
		0,
		0x04,
		0x03,
		0x02,
		0x01, /* operation */
		0x14,
		0x13,
		0x12,
		0x11, /* iteration */
		0x24,
		0x23,
		0x22,
		0x21, /* part */
		0x44,
		0x43,
		0x42,
		0x41, /* chunk */
		0x38,
		0x37,
		0x36,
		0x35,
		0x34,
		0x33,
		0x32,
		0x31,
	};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];

	psd_wire_encode(&example, bytes);
	cr_assert_arr_eq(bytes, expected, sizeof(bytes));
}

Test(wire, header_comes_back)
{
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];
	struct psd_wire_head head;
	struct psd_error err;

	psd_wire_encode(&example, bytes);
	cr_assert_eq(psd_wire_decode(bytes, &head, &err), PSD_OK);
	cr_assert_eq(head.kind, example.kind);
	cr_assert_eq(head.op, example.op);
	cr_assert_eq(head.iteration, example.iteration);
	cr_assert_eq(head.part, example.part);
	cr_assert_eq(head.chunk, example.chunk);
	cr_assert_eq(head.length_bytes, example.length_bytes);
}

/* Changes one byte of a good header; what comes out must be the words. */
static void check_refused(unsigned at, uint8_t value, const char *words)
{
	const struct psd_wire_head before = {.op = 77};
	struct psd_wire_head head = before;
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];
	struct psd_error err = {.text = ""};

	psd_wire_encode(&example, bytes);
	bytes[at] = value;
	cr_assert_eq(psd_wire_decode(bytes, &head, &err), PSD_ERUN);
	cr_assert(strstr(err.text, words), "'%s' is not in '%s'", words, err.text);
	cr_assert_eq(head.op, before.op, "written in spite of the failure");
}

Test(wire, strangers_and_other_versions_are_refused)
{
	check_refused(0, 'H', "does not speak psd's protocol (0x57445348)");
	check_refused(4, PSD_WIRE_VERSION + 1, "speaks version 18 of the protocol, this is version 17");
	check_refused(6, PSD_WIRE_KINDS, "sent a message header with the unknown kind ");
}

/* One chunk holds PSD_WIRE_CHUNK_BYTES; one byte more needs two. */
Test(wire, chunks_that_a_message_does_not_have_are_refused)
{
	struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .chunk = 1, .length_bytes = PSD_WIRE_CHUNK_BYTES + 1};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];
	struct psd_error err;

	psd_wire_encode(&head, bytes);
	cr_expect_eq(psd_wire_decode(bytes, &head, &err), PSD_OK);
	cr_expect_eq(psd_wire_chunk_bytes(head.length_bytes, 0), PSD_WIRE_CHUNK_BYTES);
	cr_expect_eq(psd_wire_chunk_bytes(head.length_bytes, 1), 1);
	head.length_bytes = PSD_WIRE_CHUNK_BYTES;
	psd_wire_encode(&head, bytes);
	cr_expect_eq(psd_wire_decode(bytes, &head, &err), PSD_ERUN);
	cr_expect(strstr(err.text, "sent chunk 1 of a message of kind 3 with "), "%s", err.text);
	head = (struct psd_wire_head){.kind = PSD_WIRE_READY, .chunk = 1};
	psd_wire_encode(&head, bytes);
	cr_expect_eq(psd_wire_decode(bytes, &head, &err), PSD_ERUN);
	cr_expect_eq(psd_wire_chunks(0), 1, "an empty message has a header, too");
}

Test(wire, lengths_that_no_message_has_are_refused)
{
	check_refused(6, PSD_WIRE_HELLO, "bytes"); /* a greeting has 24 */
	check_refused(6, PSD_WIRE_CLOCK, "bytes");
	check_refused(6, PSD_WIRE_READY, "bytes"); /* signals have none */
	check_refused(6, PSD_WIRE_BEGIN, "bytes");
	check_refused(6, PSD_WIRE_ALIVE, "bytes");
	check_refused(6, PSD_WIRE_REPORT, "bytes");
	check_refused(6, PSD_WIRE_BYE, "bytes");
}

static void expect_same_parameters(struct psd_wire_parameters found, struct psd_wire_parameters expected)
{
	cr_expect_eq(found.is_known, expected.is_known);
	cr_expect_eq(found.sum, expected.sum);
	cr_expect_eq(found.weighted, expected.weighted);
	cr_expect_eq(found.arithmetic, expected.arithmetic);
}

Test(wire, small_payloads_come_back)
{
	const struct psd_wire_hello hello = {3, 8, 2, UINT64_C(0xfedcba9876543210), 7, UINT32_C(0xfedcba98)};
	const struct psd_wire_clock clock = {-0.5, 1e-6, 1};
	const struct psd_wire_parameters parameters = {1, UINT64_C(1) << 63, 5, UINT64_C(0x1112131415161718)};
	const struct psd_wire_report report = {2.302585092994046, 17, UINT64_C(0x0102030405060708), parameters};
	const struct psd_wire_bye bye = {UINT64_C(1) << 40,
					 9,
					 parameters,
					 0.25,
					 {0.125, 0.0625, 0.03125, 0.015625},
					 {5, UINT64_C(1) << 50, [16] = 7},
					 {UINT64_C(1) << 41, UINT64_C(1) << 42, 11, 12}};
	uint8_t bytes[PSD_WIRE_SMALL_BYTES];

	psd_wire_encode_payload(PSD_WIRE_HELLO, &hello, bytes);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_HELLO, bytes).hello.host, hello.host);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_HELLO, bytes).hello.n_hosts, hello.n_hosts);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_HELLO, bytes).hello.connection, hello.connection);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_HELLO, bytes).hello.terms_bytes, hello.terms_bytes);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_HELLO, bytes).hello.attempt, hello.attempt);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_HELLO, bytes).hello.first_iteration, hello.first_iteration);
	psd_wire_encode_payload(PSD_WIRE_CLOCK, &clock, bytes);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_CLOCK, bytes).clock.sec, clock.sec);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_CLOCK, bytes).clock.rtt_sec, clock.rtt_sec);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_CLOCK, bytes).clock.is_last, clock.is_last);
	psd_wire_encode_payload(PSD_WIRE_REPORT, &report, bytes);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_REPORT, bytes).report.loss, report.loss);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_REPORT, bytes).report.correct, report.correct);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_REPORT, bytes).report.digest, report.digest);
	expect_same_parameters(psd_wire_decode_payload(PSD_WIRE_REPORT, bytes).report.parameters, parameters);
	psd_wire_encode_payload(PSD_WIRE_BYE, &bye, bytes);
	expect_same_parameters(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.parameters, parameters);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.sent_bytes, bye.sent_bytes);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.received_bytes, bye.received_bytes);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.iteration_sec, bye.iteration_sec);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.parts.compute_sec, bye.parts.compute_sec);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.parts.other_work_sec, bye.parts.other_work_sec);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.parts.exposed_comm_sec,
		     bye.parts.exposed_comm_sec);
	cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.parts.other_waiting_sec,
		     bye.parts.other_waiting_sec);
	for (unsigned age = 0; age < PSD_WIRE_AGES; age++)
		cr_assert_eq(psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.reads[age], bye.reads[age]);
	const struct psd_gradient_ages ages = psd_wire_decode_payload(PSD_WIRE_BYE, bytes).bye.ages;

	cr_assert(ages.n_updates == bye.ages.n_updates && ages.sum == bye.ages.sum && ages.most == bye.ages.most &&
		  ages.most_ahead == bye.ages.most_ahead);
}

/* Whatever a newer version or a stranger says is a failure. */
Test(wire, a_failure_has_its_senders_status)
{
	cr_expect_eq(psd_wire_status(&(struct psd_wire_head){.part = PSD_EINVAL}), PSD_EINVAL);
	cr_expect_eq(psd_wire_status(&(struct psd_wire_head){.part = PSD_ELOST}), PSD_ELOST);
	cr_expect_eq(psd_wire_status(&(struct psd_wire_head){.part = PSD_EABSENT}), PSD_EABSENT);
	cr_expect_eq(psd_wire_status(&(struct psd_wire_head){.part = PSD_OK}), PSD_ERUN);
	cr_expect_eq(psd_wire_status(&(struct psd_wire_head){.part = PSD_EABSENT + 1}), PSD_ERUN);
	cr_expect_eq(psd_wire_status(&(struct psd_wire_head){.part = UINT32_MAX}), PSD_ERUN);
}

Test(wire, words_of_a_failure_come_back_and_always_end)
{
	struct psd_wire_failed failed = {3, 4, UINT64_C(0x0102030405060708), "worker 3: no data"}, back;
	uint8_t bytes[PSD_WIRE_FAILED_BYTES];

	psd_wire_encode_payload(PSD_WIRE_FAILED, &failed, bytes);
	back = psd_wire_decode_payload(PSD_WIRE_FAILED, bytes).failed;
	cr_assert_eq(back.host, failed.host);
	cr_assert_eq(back.n_hosts, failed.n_hosts);
	cr_assert_eq(back.hosts_hash, failed.hosts_hash);
	cr_assert_str_eq(back.words, failed.words);
	memset(bytes, 'x', sizeof(bytes));
	back = psd_wire_decode_payload(PSD_WIRE_FAILED, bytes).failed;
	cr_assert_eq(strlen(back.words), PSD_WIRE_WORDS_MAX - 1);
}
