/* How busy and how full this machine is: with everything, also the kernel's work for links and what others do. */
#ifndef PSD_REAL_MACHINE_H
#define PSD_REAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Since the machine's start, over the processors that the calling thread may run on. */
struct psd_machine_time {
	double busy_sec;
	double interrupt_sec; /* of that, what the kernel does between programs: most of what links take */
	double stolen_sec;    /* of that as well: a virtual machine's processors, on which its host let others run */
	double all_sec;
};

/* False: the kernel does not tell. In steps of a hundredth of a second. */
bool psd_machine_read(struct psd_machine_time *time);
/* What the calling thread has had of it. */
double psd_machine_own_sec(void);
/* What all threads of this process have had of it. */
double psd_machine_process_sec(void);

/* What to say behind "killed by signal N": "", or what that may mean. */
const char *psd_machine_kill_hint(int signal_number);

/* Memory that programs can still have without anything being put aside; UINT64_MAX: the kernel does not tell. */
uint64_t psd_machine_available_bytes(void);

#endif
