/* Limits as text of a column and as words of a sentence. */
#include <criterion/criterion.h>

#include "engine/result/result.h"
#include "sim/output/limit.h"

Test(limit, parts_make_the_text_and_the_words)
{
	static const struct {
		struct psd_limit limit;
		const char *text, *words;
	} rows[] = {
		{{.kind = PSD_LIMIT_NONE}, "", "a resource that is not known"},
		{{.kind = PSD_LIMIT_STACK}, "stack", "the software stack"},
		{{.kind = PSD_LIMIT_CORES}, "cores", "the processor cores"},
		{{.kind = PSD_LIMIT_WAITING}, "waiting", "latency and stages that cannot overlap"},
		{{.kind = PSD_LIMIT_UPLINKS, .is_in_turn = true},
		 "device+uplinks",
		 "the device and the uplinks of the racks in turn"},
		{{.kind = PSD_LIMIT_DEVICE, .has_place = true, .number = 3}, "node 3", "node 3"},
		{{.kind = PSD_LIMIT_LINK, .has_place = true, .number = 5}, "link of node 5", "the link of node 5"},
		{{.kind = PSD_LIMIT_LINK, .is_in_turn = true, .has_place = true, .is_group = true, .number = 1},
		 "device+link of group 1",
		 "the device and the link of group 1 in turn"},
		/* the longest text */
		{{.kind = PSD_LIMIT_LINK,
		  .is_in_turn = true,
		  .has_place = true,
		  .is_group = true,
		  .number = 4294967295},
		 "device+link of group 4294967295",
		 "the device and the link of group 4294967295 in turn"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct psd_text words = {.bytes = NULL};
		char text[PSD_RESULT_LIMIT_MAX];

		psd_limit_write(&rows[i].limit, text, sizeof(text));
		psd_limit_add(&words, &rows[i].limit);
		cr_expect_str_eq(text, rows[i].text);
		cr_expect_str_eq(words.bytes, rows[i].words);
		psd_text_release(&words);
	}
}
