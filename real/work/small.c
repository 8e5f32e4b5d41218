/* Operations that are executed at once. */
#include "real/work/work.h"

/* Elements that are added or updated in some 5 us. Handing an operation to a lane takes some 30 us, 9 of them of
 * processors (gaps in a trace of scenarios/execute/cifar10-quick.yaml, two workers on two cores of an AMD EPYC). */
enum { SMALL_ELEMENTS = 8192 };

bool psd_work_is_few(uint64_t elements)
{
	return elements <= SMALL_ELEMENTS;
}

bool psd_work_has_few(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	(void)last_sec;
	return psd_work_is_few(work->host->plan->items[op->item].subject.elements);
}
