/* Processor time and memory of this machine, counted over all programs and the kernel. Also the processor time of this
 * process. */
#ifndef PSD_REAL_MACHINE_H
#define PSD_REAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Processor time since the machine was started, seconds, summed over the processors that the calling thread may use. */
struct psd_machine_time {
	double busy_sec;
	/* Part of busy_sec that was spent in interrupts; most of the kernel's work for network links is done there. */
	double interrupt_sec;
	/* Part of busy_sec in which the physical host of this virtual machine executed other virtual machines. */
	double stolen_sec;
	double all_sec;
};

/* Reads *time from the kernel. The resolution is 0.01 s. Returns false if the kernel does not tell. */
bool psd_machine_read(struct psd_machine_time *time);
/* Returns the processor time that the calling thread has used, seconds. */
double psd_machine_own_sec(void);
/* Returns the processor time that all threads of this process have used, seconds. */
double psd_machine_process_sec(void);

/* Writes the model name of the machine's first processor into `model`, or "unknown processor". */
enum { PSD_MACHINE_MODEL_MAX = 128 };
void psd_machine_model(char model[PSD_MACHINE_MODEL_MAX]);

/* True if a memory limit (`ulimit -v`) is the likely reason when this signal kills a process with the same limit as
 * this one: libraries do not check all their allocations. Then it is useless to start the process again. */
bool psd_machine_kill_is_limit(int signal_number);
/* Returns the likely reason why this signal has killed a process, as a text that follows "killed by signal N"; "" if
 * the reason is not known. */
const char *psd_machine_kill_hint(int signal_number);

/* Returns the bytes of memory that programs can still use without swapping; UINT64_MAX if the kernel does not tell. */
uint64_t psd_machine_available_bytes(void);

#endif
