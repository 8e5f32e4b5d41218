/* Any bytes as a header: decoding never reads beyond them, and what it accepts encodes to the same bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "real/net/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[PSD_WIRE_HEAD_BYTES];
	struct psd_wire_head head;
	struct psd_error err;

	if (size < PSD_WIRE_HEAD_BYTES)
		return 0;
	if (psd_wire_decode(data, &head, &err)) {
		if (!err.text[0])
			abort();
		return 0;
	}
	psd_wire_encode(&head, again);
	if (memcmp(again, data, sizeof(again)) != 0)
		abort();
	if (size - PSD_WIRE_HEAD_BYTES >= PSD_WIRE_SMALL_BYTES) {
		(void)psd_wire_decode_payload(PSD_WIRE_HELLO, data + PSD_WIRE_HEAD_BYTES).hello;
		(void)psd_wire_decode_payload(PSD_WIRE_CLOCK, data + PSD_WIRE_HEAD_BYTES).clock;
		(void)psd_wire_decode_payload(PSD_WIRE_REPORT, data + PSD_WIRE_HEAD_BYTES).report;
		(void)psd_wire_decode_payload(PSD_WIRE_RATES, data + PSD_WIRE_HEAD_BYTES).rates;
		(void)psd_wire_decode_payload(PSD_WIRE_BYE, data + PSD_WIRE_HEAD_BYTES).bye;
	}
	return 0;
}
