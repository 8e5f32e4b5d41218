/* Functions of single elements. A comment names the operations that the FLOPs count of a kind; x is the input, y the
 * output, dx and dy their gradients. */
#include "engine/model/layer.h"

/* A kind with one input, and its FLOPs for each element: forward, and backward for the gradient of the input. */
#define FUNCTION(text, forward, data)                                                                                  \
	.name = (text), .least_inputs = 1, .per_element = {.forward_flops = (forward), .data_flops = (data)}
#define NUMBER(key, member, least, most) PSD_NUMBER_KEY(key, union psd_layer_settings, member, least, most)

const struct psd_layer_kind psd_layer_abs = {FUNCTION("abs", 1, 1)};

/* Values limited to 0 and an upper bound, such as ReLU6. */
static const struct psd_key clip_keys[] = {NUMBER("most", linear.factor, 1e-6, 1e6), {.name = NULL}};
/* Both count comparisons. */
const struct psd_layer_kind psd_layer_clip = {FUNCTION("clip", 2, 2), .is_in_place = true, .keys = clip_keys,
					      .defaults.linear.factor = 6};

/* Exponential linear unit (Clevert et al. 2016): x, or alpha (exp(x) - 1) below 0. Forward: a comparison, an
 * exponential, a difference and a product; backward dx = dy (y + alpha) below 0. */
static const struct psd_key elu_keys[] = {NUMBER("alpha", slope.slope, 0, 1e6), {.name = NULL}};
const struct psd_layer_kind psd_layer_elu = {FUNCTION("elu", 4, 3), .is_in_place = true, .keys = elu_keys,
					     .defaults.slope.slope = 1};

/* Backward dx = dy y. */
const struct psd_layer_kind psd_layer_exp = {FUNCTION("exp", 1, 1), .is_in_place = true};

/* x times the distribution function of a standard normal variable at x (Hendrycks and Gimpel 2016): exact, by the error
 * function, or by their approximation with a hyperbolic tangent. The names are those of PyTorch and ONNX. */
static const char *const approximations[] = {[PSD_GELU_EXACT] = "none", [PSD_GELU_TANH] = "tanh", NULL};
static const struct psd_key gelu_keys[] = {
	PSD_CHOICE_KEY("approximate", union psd_layer_settings, gelu.approximation, approximations),
	{.name = NULL},
};

/* Exact: x (1 + erf(x / sqrt 2)) / 2 is two products, the error function, a sum and a product. Backward repeats them
 * but the last; the density is a square, an exponential and a product; a sum and the product with dy follow.
 * Approximate: x (1 + t) / 2 with t = tanh(x (a + b x x)) is three products and a sum, 5 for the tangent, a sum and two
 * products. Backward computes t again by 9, then dy ((1 + t) / 2 + x / 2 (1 - t t) (a + 3 b x x)): a sum and a product,
 * a product and a difference, a product and a sum with x x from before, three products, a sum, the product with dy. */
static struct psd_layer_work count_gelu(const struct psd_layer *layer, struct psd_shape in)
{
	const bool is_exact = layer->settings.gelu.approximation == PSD_GELU_EXACT;

	(void)in;
	return psd_layer_work_per_element(layer, is_exact ? 5 : 12, is_exact ? 9 : 20, 0);
}

const struct psd_layer_kind psd_layer_gelu = {
	.name = "gelu",
	.least_inputs = 1,
	.keys = gelu_keys,
	.count = count_gelu,
};

/* A fixed factor and summand for all values. */
static const struct psd_key linear_keys[] = {
	NUMBER("factor", linear.factor, -1e6, 1e6),
	NUMBER("summand", linear.summand, -1e6, 1e6),
	{.name = NULL},
};
const struct psd_layer_kind psd_layer_affine = {FUNCTION("affine", 2, 1), .is_in_place = true, .keys = linear_keys,
						.defaults.linear.factor = 1};

/* Natural logarithm, NaN below 0. Backward dx = dy / x. */
const struct psd_layer_kind psd_layer_log = {FUNCTION("log", 1, 1)};

/* x to a fixed power: NaN below 0, unless the exponent is a whole number. Forward: a logarithm, a product, an
 * exponential; backward dx = dy e x^(e - 1): the same and two products. */
static const struct psd_key power_keys[] = {NUMBER("exponent", power.exponent, -1e3, 1e3), {.name = NULL}};
const struct psd_layer_kind psd_layer_power = {FUNCTION("power", 3, 5), .keys = power_keys,
					       .defaults.power.exponent = 1};

/* Rectifier with a learned slope below 0, one for each channel or one for all (He et al. 2015, section 2.1). */
static const struct psd_key prelu_keys[] = {
	PSD_FLAG_KEY("shared", union psd_layer_settings, prelu.is_shared),
	{.name = NULL},
};

static bool declare_slope(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in)
{
	const struct psd_tensor slope = {.dims = {layer->settings.prelu.is_shared ? 1 : in.channels},
					 .start_value = 0.25f};

	return psd_graph_build_tensor(build, "weight", slope);
}

const struct psd_layer_kind psd_layer_prelu = {
	.name = "prelu",
	.least_inputs = 1,
	.keys = prelu_keys,
	.declare = declare_slope,
	/* a comparison and a product; gradient of the slope: a product and a sum */
	.per_element = {.forward_flops = 2, .data_flops = 2, .parameter_flops = 2},
};

/* Rectifier: max(0, x), or with a fixed slope below 0. */
static const struct psd_key relu_keys[] = {NUMBER("slope", slope.slope, 0, 1e6), {.name = NULL}};
/* Forward: a comparison; backward a product with its result. */
const struct psd_layer_kind psd_layer_relu = {FUNCTION("relu", 1, 1), .is_in_place = true, .keys = relu_keys};

/* Logistic function: y = 1 / (1 + exp(-x)). Forward: a sign, an exponential, a sum and a quotient; backward
 * dx = dy y (1 - y): a difference and two products. */
const struct psd_layer_kind psd_layer_sigmoid = {FUNCTION("sigmoid", 4, 3), .is_in_place = true};

/* x times the logistic function of x (Elfwing et al. 2018, "Sigmoid-weighted linear units", section 2.1). Forward:
 * x / (1 + exp(-x)): a sign, an exponential, a sum, a quotient. Backward: the logistic function s, with 4 operations
 * again, then dx = dy s (1 + x (1 - s)): a difference, a product, a sum, two products. */
const struct psd_layer_kind psd_layer_silu = {FUNCTION("silu", 4, 9)};

/* Smooth rectifier: log(1 + exp(x)). Forward: an exponential, a sum, a logarithm; backward dx = dy / (1 + exp(-x)): a
 * sign, an exponential, a sum, a quotient. */
const struct psd_layer_kind psd_layer_softplus = {FUNCTION("softplus", 3, 4)};

/* Hyperbolic tangent: (1 - e) / (1 + e) with e = exp(-2x). Backward dx = dy (1 - y y). */
const struct psd_layer_kind psd_layer_tanh = {FUNCTION("tanh", 5, 3), .is_in_place = true};
