/* Any bytes as what a connection says first, in pieces of any size: never a crash, leak or byte beyond the frame;
 * either it is complete, with a text that ends, or it is refused in words, or it waits for more. */
#include <stdlib.h>
#include <string.h>

#include "real/net/greeting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t most_bytes = size ? 1 + data[0] % 64u : 1;
	struct psd_greeting greeting = {.n_bytes = 0};
	struct psd_error err = {.text = ""};

	for (size_t at = 1; at < size && !psd_greeting_is_complete(&greeting);) {
		const struct iovec room = psd_greeting_room(&greeting);
		size_t n_bytes = room.iov_len < most_bytes ? room.iov_len : most_bytes;

		n_bytes = n_bytes < size - at ? n_bytes : size - at;
		if (n_bytes == 0)
			abort();
		memcpy(room.iov_base, data + at, n_bytes);
		at += n_bytes;
		if (psd_greeting_take(&greeting, n_bytes, &err)) {
			if (!err.text[0])
				abort();
			break;
		}
	}
	if (psd_greeting_is_complete(&greeting) && greeting.terms &&
	    strlen(greeting.terms) > greeting.hello.terms_bytes)
		abort();
	if (strlen(greeting.failed.words) >= sizeof(greeting.failed.words))
		abort();
	psd_greeting_release(&greeting);
	return 0;
}
