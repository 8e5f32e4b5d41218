/* Processor time and memory of this machine, of all programs and of the kernel. */
#ifndef PSD_REAL_MACHINE_H
#define PSD_REAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Processor seconds since the machine's start, of the processors that the calling thread may run on. */
struct psd_machine_time {
	double busy_sec;
	double interrupt_sec; /* part of busy_sec: interrupts, most of the work for links */
	double stolen_sec;    /* part of busy_sec: time that a virtual machine's physical host gave to others */
	double all_sec;
};

/* Reads them, with a resolution of 0.01 s. False: the kernel does not tell. */
bool psd_machine_read(struct psd_machine_time *time);
/* Processor seconds of the calling thread. */
double psd_machine_own_sec(void);
/* Processor seconds of all threads of this process. */
double psd_machine_process_sec(void);

/* Model of the first processor, or "unknown processor". */
enum { PSD_MACHINE_MODEL_MAX = 128 };
void psd_machine_model(char model[PSD_MACHINE_MODEL_MAX]);

/* Words behind "killed by signal N" about its likely cause, or "". */
const char *psd_machine_kill_hint(int signal_number);

/* Memory that programs can still take without swapping; UINT64_MAX: the kernel does not tell. */
uint64_t psd_machine_available_bytes(void);

#endif
