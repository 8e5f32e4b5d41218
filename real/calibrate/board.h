/* Processes of one measurement, and the values that they leave: as many of each. Private to real/calibrate/. */
#ifndef PSD_REAL_BOARD_H
#define PSD_REAL_BOARD_H

#include "real/calibrate/calibrate_parts.h"
#include "real/cluster/crew.h"

struct psd_board {
	const struct psd_calibration *calibration;
	unsigned n_members;
	unsigned n_values; /* of one member */
	/* private to board.c */
	struct psd_crew_barrier *barrier;
	double *values; /* (n_members, n_values), shared */
};

/* Runs work(board, member) in a process for each member, until all have ended. The first three fields are filled; the
 * values stay until psd_board_close(), which is called after a failure as well. As psd_crew_wait(). */
enum psd_status psd_board_run(struct psd_board *board, psd_crew_work_fn *work, struct psd_error *err) PSD_MUST_CHECK;
void psd_board_close(struct psd_board *board);
double *psd_board_values(const struct psd_board *board, unsigned member);
/* Meets all other members. */
void psd_board_meet(const struct psd_board *board);

#endif
