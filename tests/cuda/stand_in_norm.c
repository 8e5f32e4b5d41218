/* cuDNN's batch normalisation of the stand-in, by channel. A backward finds in the reserved memory what its forward
 * left there, or gives numbers that are none. Refuses the mode by activation, and activations: psd-run does not use
 * them. */
#include <math.h>
#include <stdlib.h>

#include "tests/cuda/stand_in_dnn.h"
#include "tests/cuda/stand_in_parts.h"

/* x and y of one shape; vectors of floats by channel. */
struct normalisation {
	struct psd_stand_in_tensor x, y;
	double alpha, beta, epsilon;
	const float *scale, *bias;
	double newest_ratio;	      /* share of the batch's statistics in the running ones */
	float *mean, *variance;	      /* running; may be NULL */
	float *saved, *saved_inverse; /* mean and 1 / sqrt(variance + epsilon), for the way back; may be NULL */
	void *workspace, *reserve;
};

struct normalisation_back {
	struct psd_stand_in_tensor x, dy, dx;
	double alpha, beta, alpha_vectors, beta_vectors, epsilon;
	const float *scale, *saved, *saved_inverse;
	float *dscale, *dbias;
	void *workspace;
	const void *reserve;
};

struct moments {
	double mean, variance; /* over samples and places: of them all, not of all but one */
};

/* Values of a channel: values[(sample * channels + channel) * places + place]. */
struct channels {
	size_t samples, channels, places;
};

static struct channels channels_of(const struct psd_stand_in_layout *layout)
{
	return (struct channels){.samples = layout->n, .channels = layout->c, .places = layout->h * layout->w};
}

static size_t at(const struct channels *of, size_t channel, size_t i)
{
	return (i / of->places * of->channels + channel) * of->places + i % of->places;
}

static struct moments moments_of(const double *values, const struct channels *of, size_t channel)
{
	const size_t n = of->samples * of->places;
	struct moments moments = {0, 0};

	for (size_t i = 0; i < n; i++)
		moments.mean += values[at(of, channel, i)] / (double)n;
	for (size_t i = 0; i < n; i++) {
		const double deviation = values[at(of, channel, i)] - moments.mean;

		moments.variance += deviation * deviation / (double)n;
	}
	return moments;
}

static bool may_touch_vector(const float *vector, size_t n, bool may_lack)
{
	return vector ? psd_stand_in_may_touch(vector, n * sizeof(*vector)) : may_lack;
}

/* ---- memory that cuDNN asks for ---- */

/* Some that depends on the shape, so that one layer's is too little for another. */
static size_t workspace_bytes_of(const struct psd_stand_in_layout *x)
{
	return sizeof(float) * (x->c + x->h * x->w);
}

/* A bit of each value, as of a rectifier behind. */
static size_t reserve_bytes_of(const struct psd_stand_in_layout *x)
{
	return psd_stand_in_tensor_values(x) / 8 + 1;
}

/* Notes of a forward in its reserve, never zero. Another layer's differ as a rule: its x lies elsewhere. */
static unsigned char note_of(const struct psd_stand_in_tensor *x, size_t i)
{
	return (unsigned char)(((uintptr_t)x->values / 256 + 37 * i) | 1);
}

static void leave_notes(const struct psd_stand_in_tensor *x, unsigned char *reserve)
{
	for (size_t i = 0; i < reserve_bytes_of(&x->layout); i++)
		reserve[i] = note_of(x, i);
}

static bool has_notes(const struct psd_stand_in_tensor *x, const unsigned char *reserve)
{
	for (size_t i = 0; i < reserve_bytes_of(&x->layout); i++)
		if (reserve[i] != note_of(x, i))
			return false;
	return true;
}

/* ---- forward ---- */

/* Running variances are of all values but one. */
static void keep(const struct normalisation *norm, size_t channel, const struct moments *moments, size_t n)
{
	const double newest = norm->newest_ratio, older = 1 - newest;

	if (norm->mean)
		norm->mean[channel] = (float)(older * norm->mean[channel] + newest * moments->mean);
	if (norm->variance)
		norm->variance[channel] = (float)(older * norm->variance[channel] +
						  newest * moments->variance * (double)n / (n > 1 ? (double)n - 1 : 1));
	if (norm->saved)
		norm->saved[channel] = (float)moments->mean;
	if (norm->saved_inverse)
		norm->saved_inverse[channel] = (float)(1 / sqrt(moments->variance + norm->epsilon));
}

static void normalise(const struct normalisation *norm, double *values, size_t channel)
{
	const struct channels of = channels_of(&norm->x.layout);
	const size_t n = of.samples * of.places;
	const struct moments moments = moments_of(values, &of, channel);
	const double ratio = norm->scale[channel] / sqrt(moments.variance + norm->epsilon);

	keep(norm, channel, &moments, n);
	for (size_t i = 0; i < n; i++) {
		double *const value = &values[at(&of, channel, i)];

		*value = (*value - moments.mean) * ratio + norm->bias[channel];
	}
}

static void run_forward(void *arguments)
{
	const struct normalisation *const norm = arguments;
	const size_t channels = norm->x.layout.c;
	double *values;

	psd_stand_in_scribble(norm->workspace, workspace_bytes_of(&norm->x.layout));

	if (!may_touch_vector(norm->scale, channels, false) || !may_touch_vector(norm->bias, channels, false) ||
	    !may_touch_vector(norm->mean, channels, true) || !may_touch_vector(norm->variance, channels, true) ||
	    !may_touch_vector(norm->saved, channels, true) || !may_touch_vector(norm->saved_inverse, channels, true) ||
	    !psd_stand_in_may_touch(norm->reserve, reserve_bytes_of(&norm->x.layout)))
		return;
	leave_notes(&norm->x, norm->reserve);
	values = psd_stand_in_load(&norm->x);
	for (size_t channel = 0; values && channel < channels; channel++)
		normalise(norm, values, channel);
	if (values)
		psd_stand_in_store(&norm->y, values, norm->alpha, norm->beta);
	free(values);
}

static cudnnStatus_t check(cudnnBatchNormMode_t mode, const struct psd_stand_in_layout *x,
			   const struct psd_stand_in_layout *y, const struct psd_stand_in_layout *vectors)
{
	if (mode != CUDNN_BATCHNORM_SPATIAL && mode != CUDNN_BATCHNORM_SPATIAL_PERSISTENT)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (!x->is_set || !y->is_set || !vectors->is_set || x->number != y->number ||
	    vectors->number != PSD_STAND_IN_FLOAT)
		return CUDNN_STATUS_BAD_PARAM;
	if (!psd_stand_in_same_shape(x, y) || vectors->n != 1 || vectors->c != x->c || vectors->h != 1 ||
	    vectors->w != 1)
		return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
	return CUDNN_STATUS_SUCCESS;
}

/* Operations that go beyond the norm itself are refused. */
static cudnnStatus_t check_plain(cudnnBatchNormOps_t operations, const void *z, const void *activation)
{
	return operations != CUDNN_BATCHNORM_OPS_BN || z || activation ? CUDNN_STATUS_NOT_SUPPORTED
								       : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t size_of(const char *function, cudnnStatus_t status, size_t wanted_bytes, size_t *bytes)
{
	const cudaError_t error = psd_stand_in_begin(function);

	psd_stand_in_unlock();
	if (error != cudaSuccess)
		return psd_stand_in_dnn_status(error);
	if (status == CUDNN_STATUS_SUCCESS)
		*bytes = wanted_bytes;
	return status;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
	cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
	const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y,
	const cudnnTensorDescriptor_t vectors, const cudnnActivationDescriptor_t activation, size_t *bytes)
{
	cudnnStatus_t status = check_plain(operations, z, activation);

	(void)handle;
	if (status == CUDNN_STATUS_SUCCESS)
		status = check(mode, &x->layout, &y->layout, &vectors->layout);
	return size_of(__func__, status, workspace_bytes_of(&x->layout), bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
	cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
	const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy,
	const cudnnTensorDescriptor_t dz, const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t vectors,
	const cudnnActivationDescriptor_t activation, size_t *bytes)
{
	cudnnStatus_t status = check_plain(operations, dz, activation);

	(void)handle, (void)y;
	if (status == CUDNN_STATUS_SUCCESS)
		status = check(mode, &x->layout, &dy->layout, &vectors->layout);
	if (status == CUDNN_STATUS_SUCCESS)
		status = check(mode, &x->layout, &dx->layout, &vectors->layout);
	return size_of(__func__, status, workspace_bytes_of(&x->layout), bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
								   cudnnBatchNormOps_t operations,
								   const cudnnActivationDescriptor_t activation,
								   const cudnnTensorDescriptor_t x, size_t *bytes)
{
	(void)handle, (void)mode;
	return size_of(__func__, check_plain(operations, NULL, activation), reserve_bytes_of(&x->layout), bytes);
}

static bool all_suit_dnn(const void *const addresses[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!psd_stand_in_suits_dnn(addresses[i]))
			return false;
	return true;
}

static bool has_room(const struct psd_stand_in_layout *x, const void *workspace, size_t workspace_bytes,
		     const void *reserve, size_t reserve_bytes)
{
	return workspace && reserve && workspace_bytes >= workspace_bytes_of(x) && reserve_bytes >= reserve_bytes_of(x);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
	cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations, const void *alpha,
	const void *beta, const cudnnTensorDescriptor_t x_layout, const void *x, const cudnnTensorDescriptor_t z_layout,
	const void *z, const cudnnTensorDescriptor_t y_layout, void *y, const cudnnTensorDescriptor_t vectors,
	const void *scale, const void *bias, double newest_ratio, void *mean, void *variance, double epsilon,
	void *saved, void *saved_inverse, cudnnActivationDescriptor_t activation, void *workspace,
	size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
	cudnnStatus_t status = check_plain(operations, z_layout ? z_layout : z, activation);
	const struct normalisation norm = {.x = psd_stand_in_tensor(&x_layout->layout, x),
					   .y = psd_stand_in_tensor(&y_layout->layout, y),
					   .alpha = *(const float *)alpha,
					   .beta = *(const float *)beta,
					   .epsilon = epsilon,
					   .scale = scale,
					   .bias = bias,
					   .newest_ratio = newest_ratio,
					   .mean = mean,
					   .variance = variance,
					   .saved = saved,
					   .saved_inverse = saved_inverse,
					   .workspace = workspace,
					   .reserve = reserve};
	const void *const addresses[] = {x, y, scale, bias, mean, variance, saved, saved_inverse, workspace, reserve};

	if (status == CUDNN_STATUS_SUCCESS)
		status = check(mode, &x_layout->layout, &y_layout->layout, &vectors->layout);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (epsilon < CUDNN_BN_MIN_EPSILON || !mean != !variance || !saved != !saved_inverse)
		return CUDNN_STATUS_BAD_PARAM;
	if (!all_suit_dnn(addresses, sizeof(addresses) / sizeof(addresses[0])))
		return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
	if (!has_room(&x_layout->layout, workspace, workspace_bytes, reserve, reserve_bytes))
		return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	return psd_stand_in_dnn_queue(__func__, handle, run_forward, &norm, sizeof(norm));
}

/* ---- back ---- */

/* The statistics of a channel that backward needs: the batch's mean and 1 / sqrt(variance + epsilon), kept or computed
 * anew. */
static void recall(const struct normalisation_back *norm, const double *x, size_t channel, double *mean,
		   double *inverse)
{
	const struct channels of = channels_of(&norm->x.layout);

	if (norm->saved) {
		*mean = norm->saved[channel];
		*inverse = norm->saved_inverse[channel];
	} else {
		const struct moments moments = moments_of(x, &of, channel);

		*mean = moments.mean;
		*inverse = 1 / sqrt(moments.variance + norm->epsilon);
	}
}

static void add_to_vector(float *vector, size_t channel, double value, double alpha, double beta)
{
	vector[channel] = (float)(alpha * value + (beta == 0 ? 0 : beta * vector[channel]));
}

/* With n values of a normalised form z: dx = scale inverse (dy - mean(dy) - z mean(dy z)). dy becomes dx. */
static void propagate(const struct normalisation_back *norm, const double *x, double *dy, size_t channel)
{
	const struct channels of = channels_of(&norm->x.layout);
	const size_t n = of.samples * of.places;
	double mean, inverse, dscale = 0, dbias = 0;

	recall(norm, x, channel, &mean, &inverse);
	for (size_t i = 0; i < n; i++) {
		const size_t place = at(&of, channel, i);

		dbias += dy[place];
		dscale += dy[place] * (x[place] - mean) * inverse;
	}
	for (size_t i = 0; i < n; i++) {
		const size_t place = at(&of, channel, i);
		const double normalised = (x[place] - mean) * inverse;

		dy[place] = norm->scale[channel] * inverse *
			    (dy[place] - dbias / (double)n - normalised * dscale / (double)n);
	}
	add_to_vector(norm->dscale, channel, dscale, norm->alpha_vectors, norm->beta_vectors);
	add_to_vector(norm->dbias, channel, dbias, norm->alpha_vectors, norm->beta_vectors);
}

static void run_back(void *arguments)
{
	const struct normalisation_back *const norm = arguments;
	const size_t channels = norm->x.layout.c;
	double *x, *dy;

	psd_stand_in_scribble(norm->workspace, workspace_bytes_of(&norm->x.layout));
	if (!may_touch_vector(norm->scale, channels, false) || !may_touch_vector(norm->dscale, channels, false) ||
	    !may_touch_vector(norm->dbias, channels, false) || !may_touch_vector(norm->saved, channels, true) ||
	    !may_touch_vector(norm->saved_inverse, channels, true) ||
	    !psd_stand_in_may_touch(norm->reserve, reserve_bytes_of(&norm->x.layout)))
		return;
	x = psd_stand_in_load(&norm->x);
	dy = psd_stand_in_load(&norm->dy);
	if (dy && !has_notes(&norm->x, norm->reserve))
		dy[0] = NAN;
	for (size_t channel = 0; x && dy && channel < channels; channel++)
		propagate(norm, x, dy, channel);
	if (x && dy)
		psd_stand_in_store(&norm->dx, dy, norm->alpha, norm->beta);
	free(dy);
	free(x);
}

/* cuDNN's quickest kernels of the persistent mode have no arguments for factors. Whether it then takes others is not
 * said: here these do it, as if all factors were 1 and 0. */
cudnnStatus_t cudnnBatchNormalizationBackwardEx(
	cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations, const void *alpha,
	const void *beta, const void *alpha_vectors, const void *beta_vectors, const cudnnTensorDescriptor_t x_layout,
	const void *x, const cudnnTensorDescriptor_t y_layout, const void *y, const cudnnTensorDescriptor_t dy_layout,
	const void *dy, const cudnnTensorDescriptor_t dz_layout, void *dz, const cudnnTensorDescriptor_t dx_layout,
	void *dx, const cudnnTensorDescriptor_t vectors, const void *scale, const void *bias, void *dscale, void *dbias,
	double epsilon, const void *saved, const void *saved_inverse, cudnnActivationDescriptor_t activation,
	void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
	cudnnStatus_t status = check_plain(operations, dz_layout ? dz_layout : dz, activation);
	const bool has_factors = mode != CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
	const struct normalisation_back norm = {.x = psd_stand_in_tensor(&x_layout->layout, x),
						.dy = psd_stand_in_tensor(&dy_layout->layout, dy),
						.dx = psd_stand_in_tensor(&dx_layout->layout, dx),
						.alpha = has_factors ? *(const float *)alpha : 1,
						.beta = has_factors ? *(const float *)beta : 0,
						.alpha_vectors = has_factors ? *(const float *)alpha_vectors : 1,
						.beta_vectors = has_factors ? *(const float *)beta_vectors : 0,
						.epsilon = epsilon,
						.scale = scale,
						.saved = saved,
						.saved_inverse = saved_inverse,
						.dscale = dscale,
						.dbias = dbias,
						.workspace = workspace,
						.reserve = reserve};
	const void *const addresses[] = {x, dy, dx, scale, dscale, dbias, saved, saved_inverse, workspace, reserve};

	(void)y_layout, (void)y, (void)bias; /* needed by activations only */
	if (status == CUDNN_STATUS_SUCCESS)
		status = check(mode, &x_layout->layout, &dy_layout->layout, &vectors->layout);
	if (status == CUDNN_STATUS_SUCCESS)
		status = check(mode, &x_layout->layout, &dx_layout->layout, &vectors->layout);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (epsilon < CUDNN_BN_MIN_EPSILON || !saved != !saved_inverse)
		return CUDNN_STATUS_BAD_PARAM;
	if (!all_suit_dnn(addresses, sizeof(addresses) / sizeof(addresses[0])))
		return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
	if (!has_room(&x_layout->layout, workspace, workspace_bytes, reserve, reserve_bytes))
		return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	return psd_stand_in_dnn_queue(__func__, handle, run_back, &norm, sizeof(norm));
}
