#include "real/calibrate/board.h"

static size_t bytes_of(const struct psd_board *board)
{
	return (size_t)board->n_members * board->n_values * sizeof(*board->values);
}

enum psd_status psd_board_run(struct psd_board *board, psd_crew_work_fn *work, struct psd_error *err)
{
	struct psd_crew crew;
	enum psd_status status;

	board->values = psd_crew_share(bytes_of(board));
	if (!board->values)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement");
	status = psd_crew_barrier_open(&board->barrier, board->n_members, err);
	if (!status)
		status = psd_crew_start(&crew, board->n_members, work, board, err);
	return status ? status : psd_crew_wait(&crew, board->calibration->options->stop_signal, err);
}

void psd_board_close(struct psd_board *board)
{
	psd_crew_barrier_close(board->barrier);
	psd_crew_unshare(board->values, bytes_of(board));
}

double *psd_board_values(const struct psd_board *board, unsigned member)
{
	return board->values + (size_t)member * board->n_values;
}

void psd_board_meet(const struct psd_board *board)
{
	psd_crew_barrier_wait(board->barrier);
}
