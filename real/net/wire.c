/* Fields are written byte by byte, so alignment and byte order of the machine do not matter. */
#include "real/net/wire.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
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

/* Values of a payload, one after the other: numbers of 4 or 8 bytes (doubles by their bits), padding, or longer bytes
 * as they are. */
struct field {
	unsigned offset, n_bytes; /* place of the first value, bytes of each; 0 bytes: behind the last field */
	unsigned n;
	bool is_padding;
};

#define FIELDS(kind, member, n_bytes, n)                                                                               \
	{                                                                                                              \
		offsetof(struct psd_wire_##kind, member), n_bytes, n, false                                            \
	}
#define FIELD(kind, member, n_bytes) FIELDS(kind, member, n_bytes, 1)
#define PADDING                                                                                                        \
	{                                                                                                              \
		0, 4, 1, true                                                                                          \
	}
#define PARAMETERS(kind)                                                                                               \
	FIELD(kind, parameters.sum, 8), FIELD(kind, parameters.weighted, 8), FIELD(kind, parameters.arithmetic, 8)

static const struct field hello[] = {FIELD(hello, host, 4),
				     FIELD(hello, n_hosts, 4),
				     FIELD(hello, connection, 4),
				     FIELD(hello, attempt, 4),
				     FIELD(hello, terms_bytes, 8),
				     FIELD(hello, first_iteration, 4),
				     PADDING,
				     {0}};
static const struct field clock[] = {
	FIELD(clock, sec, 8), FIELD(clock, rtt_sec, 8), FIELD(clock, is_last, 4), PADDING, {0}};
static const struct field report[] = {
	FIELD(report, loss, 8),	  FIELD(report, correct, 4), FIELD(report, parameters.is_known, 4),
	FIELD(report, digest, 8), PARAMETERS(report),	     {0}};
static const struct field rates[] = {FIELD(rates, number, 4), PADDING, FIELDS(rates, bps, 8, PSD_WIRE_TRIALS), {0}};
static const struct field bye[] = {FIELD(bye, sent_bytes, 8),
				   FIELD(bye, received_bytes, 8),
				   FIELD(bye, parameters.is_known, 4),
				   PADDING,
				   PARAMETERS(bye),
				   FIELD(bye, iteration_sec, 8),
				   FIELD(bye, parts.compute_sec, 8),
				   FIELD(bye, parts.other_work_sec, 8),
				   FIELD(bye, parts.exposed_comm_sec, 8),
				   FIELD(bye, parts.other_waiting_sec, 8),
				   FIELDS(bye, reads, 8, PSD_WIRE_AGES),
				   FIELD(bye, ages.n_updates, 8),
				   FIELD(bye, ages.sum, 8),
				   FIELD(bye, ages.most, 4),
				   FIELD(bye, ages.most_ahead, 4),
				   {0}};
static const struct field failed[] = {FIELD(failed, host, 4),
				      FIELD(failed, n_hosts, 4),
				      FIELD(failed, hosts_hash, 8),
				      FIELD(failed, words, PSD_WIRE_WORDS_MAX),
				      {0}};
static const struct field transport[] = {{0, PSD_WIRE_TRANSPORT_BYTES, 1, false}, {0}};
static const struct field invitation[] = {{0, PSD_WIRE_INVITATION_BYTES, 1, false}, {0}};
static const struct field none[] = {{0}};

static const struct field *fields_of(enum psd_wire_kind kind)
{
	static const struct field *const payloads[PSD_WIRE_KINDS] = {
		[PSD_WIRE_HELLO] = hello,
		[PSD_WIRE_CLOCK] = clock,
		[PSD_WIRE_REPORT] = report,
		[PSD_WIRE_RATES] = rates,
		[PSD_WIRE_BYE] = bye,
		[PSD_WIRE_FAILED] = failed,
		[PSD_WIRE_TRANSPORT] = transport,
		[PSD_WIRE_INVITATION] = invitation,
	};

	return payloads[kind] ? payloads[kind] : none;
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

size_t psd_wire_payload_bytes(enum psd_wire_kind kind)
{
	size_t n_bytes = 0;

	for (const struct field *field = fields_of(kind); field->n_bytes > 0; field++)
		n_bytes += (size_t)field->n * field->n_bytes;
	return n_bytes;
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
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "sent a message header with the unknown kind %u, must be 0 to %d", kind,
				     PSD_WIRE_KINDS - 1);
	decoded.kind = (enum psd_wire_kind)kind;
	if (kind != PSD_WIRE_DATA && decoded.length_bytes != psd_wire_payload_bytes(decoded.kind))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "sent a message of kind %u with %" PRIu64 " bytes, must have %zu", kind,
				     decoded.length_bytes, psd_wire_payload_bytes(decoded.kind));
	if (decoded.chunk >= (decoded.kind == PSD_WIRE_DATA ? psd_wire_chunks(decoded.length_bytes) : 1))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "sent chunk %" PRIu32 " of a message of kind %u with %" PRIu64 " bytes",
				     decoded.chunk, kind, decoded.length_bytes);
	*head = decoded;
	return PSD_OK;
}

enum psd_status psd_wire_status(const struct psd_wire_head *head)
{
	return head->part > PSD_OK && head->part <= PSD_EABSENT ? (enum psd_status)head->part : PSD_ERUN;
}

static uint64_t load(const char *from, unsigned n_bytes)
{
	uint32_t number;
	uint64_t long_number;

	if (n_bytes == sizeof(number)) {
		memcpy(&number, from, sizeof(number));
		return number;
	}
	memcpy(&long_number, from, sizeof(long_number));
	return long_number;
}

static void store(char *to, unsigned n_bytes, uint64_t long_number)
{
	const uint32_t number = (uint32_t)long_number;

	if (n_bytes == sizeof(number))
		memcpy(to, &number, sizeof(number));
	else
		memcpy(to, &long_number, sizeof(long_number));
}

void psd_wire_encode_payload(enum psd_wire_kind kind, const void *payload, uint8_t bytes[])
{
	for (const struct field *field = fields_of(kind); field->n_bytes > 0; field++)
		for (unsigned i = 0; i < field->n; i++, bytes += field->n_bytes) {
			const char *from = (const char *)payload + field->offset + i * field->n_bytes;

			if (field->n_bytes > sizeof(uint64_t))
				memcpy(bytes, from, field->n_bytes);
			else
				put(bytes, field->is_padding ? 0 : load(from, field->n_bytes), field->n_bytes);
		}
}

union psd_wire_payload psd_wire_decode_payload(enum psd_wire_kind kind, const uint8_t bytes[])
{
	union psd_wire_payload payload = {.raw = {0}};

	for (const struct field *field = fields_of(kind); field->n_bytes > 0; field++)
		for (unsigned i = 0; i < field->n; i++, bytes += field->n_bytes) {
			const uint8_t *at = bytes;
			char *to = (char *)&payload + field->offset + i * field->n_bytes;

			if (field->n_bytes > sizeof(uint64_t))
				memcpy(to, bytes, field->n_bytes);
			else if (!field->is_padding)
				store(to, field->n_bytes, get(&at, field->n_bytes));
		}
	if (kind == PSD_WIRE_FAILED)
		payload.failed.words[PSD_WIRE_WORDS_MAX - 1] = '\0';
	return payload;
}
