/* Fields are written byte by byte, so alignment and byte order of the machine do not matter. */
#include "real/net/wire.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static uint8_t *put(uint8_t *at, uint64_t value, unsigned n_bytes)
{
	for (unsigned i = 0; i < n_bytes; i++)
		at[i] = (uint8_t)(value >> 8 * i & 0xff);
	return at + n_bytes;
}

static uint64_t get(const uint8_t **at, unsigned n_bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n_bytes; i++)
		value |= (uint64_t)(*at)[i] << 8 * i;
	*at += n_bytes;
	return value;
}

static uint64_t bits_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

static double double_of(uint64_t bits)
{
	double number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

uint64_t psd_wire_chunks(uint64_t length_bytes)
{
	return length_bytes > 0 ? (length_bytes - 1) / PSD_WIRE_CHUNK_BYTES + 1 : 1;
}

uint64_t psd_wire_chunk_bytes(uint64_t length_bytes, uint64_t chunk)
{
	const uint64_t first_byte = chunk * PSD_WIRE_CHUNK_BYTES;

	if (first_byte >= length_bytes)
		return 0;
	return length_bytes - first_byte < PSD_WIRE_CHUNK_BYTES ? length_bytes - first_byte : PSD_WIRE_CHUNK_BYTES;
}

void psd_wire_encode(const struct psd_wire_head *head, uint8_t bytes[PSD_WIRE_HEAD_BYTES])
{
	uint8_t *at = put(bytes, PSD_WIRE_MAGIC, 4);

	at = put(at, PSD_WIRE_VERSION, 2);
	at = put(at, (uint64_t)head->kind, 2);
	at = put(at, head->op, 4);
	at = put(at, head->iteration, 4);
	at = put(at, head->part, 4);
	at = put(at, head->chunk, 4);
	put(at, head->length_bytes, 8);
}

static bool is_length_right(enum psd_wire_kind kind, uint64_t length_bytes)
{
	static const uint64_t small[PSD_WIRE_KINDS] = {
		[PSD_WIRE_HELLO] = PSD_WIRE_HELLO_BYTES,   [PSD_WIRE_CLOCK] = PSD_WIRE_CLOCK_BYTES,
		[PSD_WIRE_REPORT] = PSD_WIRE_REPORT_BYTES, [PSD_WIRE_BYE] = PSD_WIRE_BYE_BYTES,
		[PSD_WIRE_FAILED] = PSD_WIRE_FAILED_BYTES, [PSD_WIRE_TRANSPORT] = PSD_WIRE_TRANSPORT_BYTES,
		[PSD_WIRE_RATES] = PSD_WIRE_RATES_BYTES,   [PSD_WIRE_INVITATION] = PSD_WIRE_INVITATION_BYTES,
	};

	return kind == PSD_WIRE_DATA || length_bytes == small[kind]; /* only the program knows lengths of tensors */
}

enum psd_status psd_wire_decode(const uint8_t bytes[PSD_WIRE_HEAD_BYTES], struct psd_wire_head *head,
				struct psd_error *err)
{
	const uint8_t *at = bytes;
	const uint32_t magic = (uint32_t)get(&at, 4);
	const unsigned version = (unsigned)get(&at, 2);
	const unsigned kind = (unsigned)get(&at, 2);
	struct psd_wire_head decoded = {.op = (uint32_t)get(&at, 4)};

	decoded.iteration = (uint32_t)get(&at, 4);
	decoded.part = (uint32_t)get(&at, 4);
	decoded.chunk = (uint32_t)get(&at, 4);
	decoded.length_bytes = get(&at, 8);
	if (magic != PSD_WIRE_MAGIC)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "does not speak psd's protocol (0x%08" PRIx32 ")",
				     magic);
	if (version != PSD_WIRE_VERSION)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "speaks version %u of the protocol, this is version %d", version,
				     PSD_WIRE_VERSION);
	if (kind >= PSD_WIRE_KINDS)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "sent a message of unknown kind %u", kind);
	decoded.kind = (enum psd_wire_kind)kind;
	if (!is_length_right(decoded.kind, decoded.length_bytes))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "sent a message of kind %u with %" PRIu64 " bytes",
				     kind, decoded.length_bytes);
	if (decoded.chunk >= (decoded.kind == PSD_WIRE_DATA ? psd_wire_chunks(decoded.length_bytes) : 1))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "sent chunk %" PRIu32 " of a message of kind %u with %" PRIu64 " bytes",
				     decoded.chunk, kind, decoded.length_bytes);
	*head = decoded;
	return PSD_OK;
}

enum psd_status psd_wire_status(const struct psd_wire_head *head)
{
	return head->part > PSD_OK && head->part <= PSD_ELOST ? (enum psd_status)head->part : PSD_ERUN;
}

void psd_wire_encode_hello(const struct psd_wire_hello *hello, uint8_t bytes[PSD_WIRE_HELLO_BYTES])
{
	uint8_t *at = put(put(put(bytes, hello->host, 4), hello->n_hosts, 4), hello->connection, 4);

	at = put(put(at, hello->attempt, 4), hello->terms_bytes, 8);
	put(put(at, hello->first_iteration, 4), 0, 4);
}

struct psd_wire_hello psd_wire_decode_hello(const uint8_t bytes[PSD_WIRE_HELLO_BYTES])
{
	struct psd_wire_hello hello = {.host = (uint32_t)get(&bytes, 4)};

	hello.n_hosts = (uint32_t)get(&bytes, 4);
	hello.connection = (uint32_t)get(&bytes, 4);
	hello.attempt = (uint32_t)get(&bytes, 4);
	hello.terms_bytes = get(&bytes, 8);
	hello.first_iteration = (uint32_t)get(&bytes, 4);
	return hello;
}

void psd_wire_encode_clock(const struct psd_wire_clock *clock, uint8_t bytes[PSD_WIRE_CLOCK_BYTES])
{
	put(put(put(put(bytes, bits_of(clock->sec), 8), bits_of(clock->rtt_sec), 8), clock->is_last, 4), 0, 4);
}

struct psd_wire_clock psd_wire_decode_clock(const uint8_t bytes[PSD_WIRE_CLOCK_BYTES])
{
	struct psd_wire_clock clock = {.sec = double_of(get(&bytes, 8))};

	clock.rtt_sec = double_of(get(&bytes, 8));
	clock.is_last = (uint32_t)get(&bytes, 4);
	return clock;
}

void psd_wire_encode_report(const struct psd_wire_report *report, uint8_t bytes[PSD_WIRE_REPORT_BYTES])
{
	put(put(put(put(bytes, bits_of(report->loss), 8), report->correct, 4), 0, 4), report->digest, 8);
}

struct psd_wire_report psd_wire_decode_report(const uint8_t bytes[PSD_WIRE_REPORT_BYTES])
{
	struct psd_wire_report report = {.loss = double_of(get(&bytes, 8))};

	report.correct = (uint32_t)get(&bytes, 4);
	bytes += 4;
	report.digest = get(&bytes, 8);
	return report;
}

void psd_wire_encode_rates(const struct psd_wire_rates *lines, uint8_t bytes[PSD_WIRE_RATES_BYTES])
{
	uint8_t *at = put(put(bytes, lines->number, 4), 0, 4);

	for (unsigned i = 0; i < PSD_WIRE_TRIALS; i++)
		at = put(at, bits_of(lines->bps[i]), 8);
}

struct psd_wire_rates psd_wire_decode_rates(const uint8_t bytes[PSD_WIRE_RATES_BYTES])
{
	struct psd_wire_rates lines = {.number = (uint32_t)get(&bytes, 4)};

	bytes += 4;
	for (unsigned i = 0; i < PSD_WIRE_TRIALS; i++)
		lines.bps[i] = double_of(get(&bytes, 8));
	return lines;
}

void psd_wire_encode_bye(const struct psd_wire_bye *bye, uint8_t bytes[PSD_WIRE_BYE_BYTES])
{
	put(put(bytes, bye->sent_bytes, 8), bye->received_bytes, 8);
}

struct psd_wire_bye psd_wire_decode_bye(const uint8_t bytes[PSD_WIRE_BYE_BYTES])
{
	struct psd_wire_bye bye;

	bye.sent_bytes = get(&bytes, 8);
	bye.received_bytes = get(&bytes, 8);
	return bye;
}

void psd_wire_encode_failed(const struct psd_wire_failed *failed, uint8_t bytes[PSD_WIRE_FAILED_BYTES])
{
	memcpy(put(put(put(bytes, failed->host, 4), failed->n_hosts, 4), failed->hosts_hash, 8), failed->words,
	       sizeof(failed->words));
}

struct psd_wire_failed psd_wire_decode_failed(const uint8_t bytes[PSD_WIRE_FAILED_BYTES])
{
	struct psd_wire_failed failed = {.host = (uint32_t)get(&bytes, 4)};

	failed.n_hosts = (uint32_t)get(&bytes, 4);
	failed.hosts_hash = get(&bytes, 8);
	memcpy(failed.words, bytes, sizeof(failed.words) - 1);
	return failed;
}
