/* Functions of single elements. A node that is one puts a term upon what its input has; layers are made of terms when
 * somebody needs the values. By then what exporters spell out in several nodes is one term, which is compared with the
 * functions that psd has a layer for at some points. */
#include <math.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* Where functions are compared; far out, too, where one may be cut off. */
static const double points[] = {-1e6, -40, -9, -4.1, -2.3, -1.2, -0.7, -0.15, 0.2, 0.65, 1.3, 2.4, 3.7, 9, 40, 1e6};
enum { POINTS = sizeof(points) / sizeof(points[0]) };

/* How many functions upon each other are looked at together: more than any that is known is spelt out in. */
enum { DEPTH = 10 };

enum function {
	IDENTITY,
	LINEAR, /* a x + b */
	POWER,	/* x^a */
	SIGMOID,
	TANH,
	ERF,
	EXP,
	LOG,
	ABS,
	RELU, /* slope a below 0 */
	ELU,  /* a (e^x - 1) below 0 */
	CLIP, /* to [0, a] */
	SOFTPLUS,
	GELU,
	GELU_TANH,
	SUM,	 /* of left and right */
	PRODUCT, /* the same */
};

struct psd_onnx_term {
	enum function function;
	double a, b;
	struct psd_onnx_term *left, *right;
	const Onnx__Node *node; /* that the layer is named after */
	double table[POINTS];
	unsigned depth;
	bool is_made; /* as layer `made`, of layer `base` */
	unsigned base, made;
};

/* ---- terms ---- */

static double gelu(double x)
{
	return x * (1 + erf(x / sqrt(2))) / 2;
}
static double gelu_tanh(double x)
{
	return x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) / 2;
}
static double silu(double x)
{
	return x / (1 + exp(-x));
}

static double evaluate(const struct psd_onnx_term *term, unsigned point)
{
	const double x = term->left ? term->left->table[point] : points[point];

	switch (term->function) {
	case IDENTITY: return x;
	case LINEAR: return term->a * x + term->b;
	case POWER: return pow(x, term->a);
	case SIGMOID: return 1 / (1 + exp(-x));
	case TANH: return tanh(x);
	case ERF: return erf(x);
	case EXP: return exp(x);
	case LOG: return log(x);
	case ABS: return fabs(x);
	case RELU: return x > 0 ? x : term->a * x;
	case ELU: return x > 0 ? x : term->a * (exp(x) - 1);
	case CLIP: return fmin(fmax(x, 0), term->a);
	case SOFTPLUS: return log1p(exp(x));
	case GELU: return gelu(x);
	case GELU_TANH: return gelu_tanh(x);
	case SUM: return x + term->right->table[point];
	case PRODUCT: return x * term->right->table[point];
	}
	return x;
}

static struct psd_onnx_term *make(struct psd_onnx *onnx, struct psd_onnx_term term)
{
	struct psd_onnx_term *made = psd_arena_take(&onnx->arena, sizeof(*made));

	if (!made)
		return NULL;
	*made = term;
	made->node = onnx->node;
	made->depth = 1 + (term.left ? term.left->depth : 0);
	if (term.right && term.right->depth >= made->depth)
		made->depth = term.right->depth + 1;
	for (unsigned p = 0; p < POINTS; p++)
		made->table[p] = evaluate(made, p);
	return made;
}

struct psd_onnx_term *psd_onnx_term_new(struct psd_onnx *onnx)
{
	return make(onnx, (struct psd_onnx_term){.function = IDENTITY});
}

/* Upon another; NULL passes through, without memory. */
static struct psd_onnx_term *upon(struct psd_onnx *onnx, struct psd_onnx_term *left, enum function function, double a,
				  double b)
{
	if (function == LINEAR && a == 1 && b == 0)
		return left;
	if (left && function == LINEAR && left->function == LINEAR)
		return upon(onnx, left->left, LINEAR, a * left->a, a * left->b + b);
	return left ? make(onnx, (struct psd_onnx_term){.function = function, .a = a, .b = b, .left = left}) : NULL;
}

static struct psd_onnx_term *of_two(struct psd_onnx *onnx, enum function function, struct psd_onnx_term *left,
				    struct psd_onnx_term *right)
{
	return left && right ? make(onnx, (struct psd_onnx_term){.function = function, .left = left, .right = right})
			     : NULL;
}

bool psd_onnx_term_is_product(const struct psd_onnx_term *term, double *factor)
{
	*factor = term->function == LINEAR ? term->a : 1;
	return term->function == IDENTITY ||
	       (term->function == LINEAR && term->b == 0 && term->left->function == IDENTITY);
}

static bool are_same_elements(const struct psd_onnx_view *one, const struct psd_onnx_view *other)
{
	struct psd_onnx_view a = *one, b = *other;

	if (a.layer != b.layer || a.offset != b.offset || !psd_onnx_view_align(&a, &b))
		return false;
	for (unsigned d = 0; d < psd_onnx_view_digits(&a); d++)
		if (a.digits[d].stride != b.digits[d].stride)
			return false;
	return true;
}

bool psd_onnx_is_square(const struct psd_onnx_value *square, const struct psd_onnx_value *of)
{
	const struct psd_onnx_term *term = square->term;
	const bool is_power = term->function == POWER && term->a == 2 && term->left == of->term;
	const bool is_product = term->function == PRODUCT && term->left == of->term && term->right == of->term;

	return (is_power || is_product) && are_same_elements(&square->view, &of->view);
}

/* ---- layers of them ---- */

/* What each function is, that is no sum or product and has a layer of its own. */
static const struct psd_layer_kind *kind_of(const struct psd_onnx_term *term, union psd_layer_settings *settings)
{
	switch (term->function) {
	case LINEAR:
		settings->linear = (struct psd_linear_settings){.factor = term->a, .summand = term->b};
		return &psd_layer_linear;
	case POWER: settings->power.exponent = term->a; return &psd_layer_power;
	case SIGMOID: return &psd_layer_sigmoid;
	case TANH: return &psd_layer_tanh;
	case EXP: return &psd_layer_exp;
	case LOG: return &psd_layer_log;
	case ABS: return &psd_layer_abs;
	case RELU: settings->slope.slope = term->a; return &psd_layer_relu;
	case ELU: settings->slope.slope = term->a; return &psd_layer_elu;
	case CLIP: settings->linear.factor = term->a; return &psd_layer_clip;
	case SOFTPLUS: return &psd_layer_softplus;
	case GELU: return &psd_layer_gelu;
	case GELU_TANH: settings->gelu.approximation = PSD_GELU_TANH; return &psd_layer_gelu;
	case IDENTITY:
	case ERF:
	case SUM:
	case PRODUCT: break;
	}
	return NULL;
}

static bool is_function_of(const struct psd_onnx_term *term, double function(double x), const struct psd_onnx_term *of)
{
	for (unsigned p = 0; p < POINTS; p++) {
		const double value = function(of->table[p]);

		if (!(fabs(term->table[p] - value) <= 1e-5 * (1 + fabs(value))))
			return false;
	}
	return true;
}

/* What is spelt out by others, and has a layer. */
static const struct {
	double (*function)(double x);
	const struct psd_layer_kind *kind;
	bool is_tanh;
} spelt[] = {
	{gelu, &psd_layer_gelu, false},
	{gelu_tanh, &psd_layer_gelu, true},
	{silu, &psd_layer_silu, false},
};

/* The part of a term, the nearest to what it is a function of, that it is function `i` of; NULL: it is not. */
static struct psd_onnx_term *find_argument(const struct psd_onnx_term *term, struct psd_onnx_term *part, unsigned i)
{
	struct psd_onnx_term *found = NULL;

	if (part->left)
		found = find_argument(term, part->left, i);
	if (!found && part->right && part->right != part->left)
		found = find_argument(term, part->right, i);
	return found || part == term || !is_function_of(term, spelt[i].function, part) ? found : part;
}

static enum psd_status make_layer(struct psd_onnx *onnx, struct psd_onnx_term *term, unsigned base, unsigned *layer);

static enum psd_status make_spelt(struct psd_onnx *onnx, struct psd_onnx_term *term, unsigned base, bool *is_made,
				  unsigned *layer)
{
	*is_made = false;
	for (unsigned i = 0; i < sizeof(spelt) / sizeof(spelt[0]); i++) {
		struct psd_onnx_term *of = find_argument(term, term, i);
		union psd_layer_settings settings = spelt[i].kind->defaults;
		enum psd_status status;

		if (!of)
			continue;
		*is_made = true;
		if (spelt[i].is_tanh)
			settings.gelu.approximation = PSD_GELU_TANH;
		status = make_layer(onnx, of, base, layer);
		return status ? status : psd_onnx_add_simple(onnx, spelt[i].kind, &settings, *layer, layer);
	}
	return PSD_OK;
}

static enum psd_status make_of_two(struct psd_onnx *onnx, struct psd_onnx_term *term, unsigned base, unsigned *layer)
{
	struct psd_layer_spec spec = {.kind = term->function == SUM ? &psd_layer_add : &psd_layer_multiply,
				      .n_inputs = 2};
	bool is_made;
	enum psd_status status = make_spelt(onnx, term, base, &is_made, layer);

	if (status || is_made)
		return status;
	spec.settings = spec.kind->defaults;
	status = make_layer(onnx, term->left, base, &spec.inputs[0]);
	if (!status)
		status = make_layer(onnx, term->right, base, &spec.inputs[1]);
	return status ? status : psd_onnx_add(onnx, &spec, NULL, layer);
}

static enum psd_status make_new_layer(struct psd_onnx *onnx, struct psd_onnx_term *term, unsigned base, unsigned *layer)
{
	union psd_layer_settings settings;
	const struct psd_layer_kind *kind;
	enum psd_status status = PSD_OK;

	memset(&settings, 0, sizeof(settings));
	kind = kind_of(term, &settings);
	if (term->right) {
		status = make_of_two(onnx, term, base, layer);
	} else if (kind) {
		bool is_made = false;

		if (term->function == LINEAR)
			status = make_spelt(onnx, term, base, &is_made, layer);
		if (!status && !is_made)
			status = make_layer(onnx, term->left, base, layer);
		if (!status && !is_made)
			status = psd_onnx_add_simple(onnx, kind, &settings, *layer, layer);
	} else {
		return psd_onnx_refuse(onnx, "needs the error function, which is known as a part of GELU alone");
	}
	return status;
}

static enum psd_status make_layer(struct psd_onnx *onnx, struct psd_onnx_term *term, unsigned base, unsigned *layer)
{
	const Onnx__Node *node = onnx->node;
	enum psd_status status;

	*layer = term->function == IDENTITY ? base : term->made;
	if (term->function == IDENTITY || (term->is_made && term->base == base))
		return PSD_OK;
	onnx->node = term->node;
	status = make_new_layer(onnx, term, base, layer);
	onnx->node = node;
	term->is_made = !status;
	term->base = base;
	term->made = *layer;
	return status;
}

enum psd_status psd_onnx_settle(struct psd_onnx *onnx, struct psd_onnx_value *data)
{
	enum psd_status status;

	if (data->rotary_base > 0)
		return psd_onnx_refuse(onnx,
				       "has an input that is rotated, which only attention's queries and keys can "
				       "be");
	if (data->term->function == IDENTITY)
		return PSD_OK;
	status = psd_onnx_make_whole(onnx, &data->view);
	if (!status)
		status = make_layer(onnx, data->term, data->view.layer, &data->view.layer);
	if (status)
		return status;
	data->is_count = false;
	data->term = psd_onnx_term_new(onnx);
	return data->term ? PSD_OK : psd_onnx_no_memory(onnx);
}

enum psd_status psd_onnx_negate(struct psd_onnx *onnx, struct psd_onnx_value *data)
{
	data->term = upon(onnx, data->term, LINEAR, -1, 0);
	return data->term ? PSD_OK : psd_onnx_no_memory(onnx);
}

enum psd_status psd_onnx_invert(struct psd_onnx *onnx, struct psd_onnx_value *data)
{
	data->term = upon(onnx, data->term, POWER, -1, 0);
	return data->term ? PSD_OK : psd_onnx_no_memory(onnx);
}

/* ---- nodes that are functions ---- */

/* max(x, low) and min(x, high), by what is cut off below 0. */
static struct psd_onnx_term *not_below(struct psd_onnx *onnx, struct psd_onnx_term *x, double low)
{
	return upon(onnx, upon(onnx, upon(onnx, x, LINEAR, 1, -low), RELU, 0, 0), LINEAR, 1, low);
}

static struct psd_onnx_term *not_above(struct psd_onnx *onnx, struct psd_onnx_term *x, double high)
{
	return upon(onnx, upon(onnx, upon(onnx, x, LINEAR, -1, high), RELU, 0, 0), LINEAR, -1, high);
}

/* A limit that an input says, or in old files an attribute. */
static bool has_limit(struct psd_onnx *onnx, unsigned i, const char *name, double *limit)
{
	const bool has_attribute = psd_onnx_attribute(onnx->node, name) != NULL;

	*limit = 0;
	if (psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, i), limit))
		return true;
	*limit = psd_onnx_number(onnx, name, 0);
	return has_attribute;
}

static enum psd_status check_limits(struct psd_onnx *onnx)
{
	double limit;

	for (unsigned i = 1; i < 3; i++)
		if (psd_onnx_input(onnx, i)->kind != PSD_ONNX_ABSENT &&
		    !psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, i), &limit))
			return psd_onnx_refuse(onnx, "has a limit that is no number of the file");
	return PSD_OK;
}

static struct psd_onnx_term *clip(struct psd_onnx *onnx, struct psd_onnx_term *x)
{
	double low, high;
	const bool has_low = has_limit(onnx, 1, "min", &low) && low > -1e30;
	const bool has_high = has_limit(onnx, 2, "max", &high) && high < 1e30;

	if (!has_low && !has_high)
		return x;
	if (!has_low)
		return not_above(onnx, x, high);
	if (!has_high)
		return not_below(onnx, x, low);
	return upon(onnx, upon(onnx, upon(onnx, x, LINEAR, 1, -low), CLIP, high - low, 0), LINEAR, 1, low);
}

static struct psd_onnx_term *hard_sigmoid(struct psd_onnx *onnx, struct psd_onnx_term *x, double a, double b)
{
	return upon(onnx, upon(onnx, x, LINEAR, a, b), CLIP, 1, 0);
}

/* One input; NULL: no such function (or no memory, then *is_known). */
static struct psd_onnx_term *unary(struct psd_onnx *onnx, struct psd_onnx_term *x, bool *is_known)
{
	static const struct {
		const char *op;
		enum function function;
		double a, b;
		const char *attribute; /* that is a instead */
	} plain[] = {
		{"Relu", RELU, 0, 0, NULL},	    {"LeakyRelu", RELU, 0.01, 0, "alpha"},
		{"Sigmoid", SIGMOID, 0, 0, NULL},   {"Tanh", TANH, 0, 0, NULL},
		{"Erf", ERF, 0, 0, NULL},	    {"Exp", EXP, 0, 0, NULL},
		{"Log", LOG, 0, 0, NULL},	    {"Abs", ABS, 0, 0, NULL},
		{"Elu", ELU, 1, 0, "alpha"},	    {"Softplus", SOFTPLUS, 0, 0, NULL},
		{"Neg", LINEAR, -1, 0, NULL},	    {"Sqrt", POWER, 0.5, 0, NULL},
		{"Reciprocal", POWER, -1, 0, NULL},
	};
	const char *op = onnx->node->op_type;

	*is_known = true;
	for (unsigned i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(op, plain[i].op))
			return upon(onnx, x, plain[i].function,
				    plain[i].attribute ? psd_onnx_number(onnx, plain[i].attribute, plain[i].a)
						       : plain[i].a,
				    plain[i].b);
	if (!strcmp(op, "Gelu"))
		return upon(onnx, x, psd_onnx_text_is(onnx, "approximate", "tanh") ? GELU_TANH : GELU, 0, 0);
	if (!strcmp(op, "Clip"))
		return clip(onnx, x);
	if (!strcmp(op, "HardSigmoid"))
		return hard_sigmoid(onnx, x, psd_onnx_number(onnx, "alpha", 0.2), psd_onnx_number(onnx, "beta", 0.5));
	if (!strcmp(op, "HardSwish"))
		return of_two(onnx, PRODUCT, x, hard_sigmoid(onnx, x, 1.0 / 6, 0.5));
	if (!strcmp(op, "Swish"))
		return of_two(onnx, PRODUCT, x,
			      upon(onnx, upon(onnx, x, LINEAR, psd_onnx_number(onnx, "alpha", 1), 0), SIGMOID, 0, 0));
	if (!strcmp(op, "Mish"))
		return of_two(onnx, PRODUCT, x, upon(onnx, upon(onnx, x, SOFTPLUS, 0, 0), TANH, 0, 0));
	if (!strcmp(op, "Celu")) { /* a (e^(x / a) - 1) below 0 */
		const double a = psd_onnx_number(onnx, "alpha", 1);

		return upon(onnx, upon(onnx, upon(onnx, x, LINEAR, 1 / a, 0), ELU, 1, 0), LINEAR, a, 0);
	}
	if (!strcmp(op, "Softsign"))
		return of_two(onnx, PRODUCT, x,
			      upon(onnx, upon(onnx, upon(onnx, x, ABS, 0, 0), LINEAR, 1, 1), POWER, -1, 0));
	if (!strcmp(op, "Selu"))
		return upon(onnx, upon(onnx, x, ELU, psd_onnx_number(onnx, "alpha", 1.67326319), 0), LINEAR,
			    psd_onnx_number(onnx, "gamma", 1.05070102), 0);
	*is_known = false;
	return NULL;
}

/* An element and a number, in this order or, where is_second, the other. */
static struct psd_onnx_term *with_number(struct psd_onnx *onnx, struct psd_onnx_term *x, double number, bool is_second,
					 bool *is_known)
{
	const char *op = onnx->node->op_type;

	*is_known = true;
	if (!strcmp(op, "Add"))
		return upon(onnx, x, LINEAR, 1, number);
	if (!strcmp(op, "Mul"))
		return upon(onnx, x, LINEAR, number, 0);
	if (!strcmp(op, "Sub"))
		return is_second ? upon(onnx, x, LINEAR, -1, number) : upon(onnx, x, LINEAR, 1, -number);
	if (!strcmp(op, "Div"))
		return is_second ? upon(onnx, upon(onnx, x, POWER, -1, 0), LINEAR, number, 0)
				 : upon(onnx, x, LINEAR, 1 / number, 0);
	if (!strcmp(op, "Pow") && !is_second)
		return upon(onnx, x, POWER, number, 0);
	if (!strcmp(op, "Max"))
		return not_below(onnx, x, number);
	if (!strcmp(op, "Min"))
		return not_above(onnx, x, number);
	*is_known = false;
	return NULL;
}

/* Two functions of the same elements. */
static struct psd_onnx_term *with_itself(struct psd_onnx *onnx, struct psd_onnx_term *x, struct psd_onnx_term *y,
					 bool *is_known)
{
	const char *op = onnx->node->op_type;

	*is_known = true;
	if (!strcmp(op, "Add"))
		return of_two(onnx, SUM, x, y);
	if (!strcmp(op, "Sub"))
		return of_two(onnx, SUM, x, upon(onnx, y, LINEAR, -1, 0));
	if (!strcmp(op, "Mul"))
		return of_two(onnx, PRODUCT, x, y);
	if (!strcmp(op, "Div"))
		return of_two(onnx, PRODUCT, x, upon(onnx, y, POWER, -1, 0));
	*is_known = false;
	return NULL;
}

enum psd_status psd_onnx_apply(struct psd_onnx *onnx, bool *is_done)
{
	struct psd_onnx_value *first = psd_onnx_input(onnx, 0), *second = psd_onnx_input(onnx, 1);
	const bool is_second = first->kind == PSD_ONNX_CONSTANT;
	struct psd_onnx_value *data = is_second ? second : first, *other = is_second ? first : second;
	struct psd_onnx_term *term = NULL;
	double number;
	enum psd_status status = PSD_OK;

	*is_done = false;
	if (data->kind != PSD_ONNX_DATA)
		return PSD_OK;
	if (!strcmp(onnx->node->op_type, "Clip"))
		status = check_limits(onnx);
	if (!status && data->term->depth > DEPTH)
		status = psd_onnx_settle(onnx, data);
	if (!status && other->kind == PSD_ONNX_DATA && other->term->depth > DEPTH)
		status = psd_onnx_settle(onnx, other);
	if (status)
		return status;
	if (!is_second)
		term = unary(onnx, data->term, is_done);
	if (!*is_done && onnx->node->n_input == 2 && psd_onnx_is_scalar(onnx, other, &number) &&
	    other->n_dims <= data->view.n_axes)
		term = with_number(onnx, data->term, number, is_second, is_done);
	if (!*is_done && onnx->node->n_input == 2 && other->kind == PSD_ONNX_DATA && data->rotary_base == 0 &&
	    other->rotary_base == 0 && are_same_elements(&data->view, &other->view))
		term = with_itself(onnx, data->term, other->term, is_done);
	if (*is_done && !term)
		return psd_onnx_no_memory(onnx);
	if (*is_done) {
		struct psd_onnx_value result = *data;

		result.term = term;
		*psd_onnx_output(onnx, 0) = result;
	}
	return PSD_OK;
}
