/* Elementwise expressions. An elementwise node extends the expression of its input; the expression becomes layers when
 * a node needs its values. By then the nodes into which exporters decompose a function are one expression, which is
 * compared at some points with the functions of psd's layers. */
#include <math.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* Points of comparison; the outermost ones find limits. */
static const double points[] = {-1e6, -40, -9, -4.1, -2.3, -1.2, -0.7, -0.15, 0.2, 0.65, 1.3, 2.4, 3.7, 9, 40, 1e6};
enum { POINTS = sizeof(points) / sizeof(points[0]) };

/* Limit of the depth of an expression; no known function is decomposed into more. */
enum { DEPTH_MAX = 10 };

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
	SUM,	 /* left + right */
	PRODUCT, /* left * right */
};

struct psd_onnx_expr {
	enum function function;
	double a, b;
	struct psd_onnx_expr *left, *right;
	const Onnx__Node *node; /* gives the layer its name */
	double table[POINTS];
	unsigned depth;
	bool is_made; /* it is layer `made`, with layer `base` as x */
	unsigned base, made;
};

/* ---- expressions ---- */

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

static double evaluate(const struct psd_onnx_expr *expr, unsigned point)
{
	const double x = expr->left ? expr->left->table[point] : points[point];

	switch (expr->function) {
	case IDENTITY: return x;
	case LINEAR: return expr->a * x + expr->b;
	case POWER: return pow(x, expr->a);
	case SIGMOID: return 1 / (1 + exp(-x));
	case TANH: return tanh(x);
	case ERF: return erf(x);
	case EXP: return exp(x);
	case LOG: return log(x);
	case ABS: return fabs(x);
	case RELU: return x > 0 ? x : expr->a * x;
	case ELU: return x > 0 ? x : expr->a * (exp(x) - 1);
	case CLIP: return fmin(fmax(x, 0), expr->a);
	case SOFTPLUS: return log1p(exp(x));
	case GELU: return gelu(x);
	case GELU_TANH: return gelu_tanh(x);
	case SUM: return x + expr->right->table[point];
	case PRODUCT: return x * expr->right->table[point];
	}
	return x;
}

static struct psd_onnx_expr *make(struct psd_onnx *onnx, struct psd_onnx_expr expr)
{
	struct psd_onnx_expr *made = psd_arena_take(&onnx->arena, sizeof(*made));

	if (!made)
		return NULL;
	*made = expr;
	made->node = onnx->node;
	made->depth = 1 + (expr.left ? expr.left->depth : 0);
	if (expr.right && expr.right->depth >= made->depth)
		made->depth = expr.right->depth + 1;
	for (unsigned p = 0; p < POINTS; p++)
		made->table[p] = evaluate(made, p);
	return made;
}

struct psd_onnx_expr *psd_onnx_expr_new(struct psd_onnx *onnx)
{
	return make(onnx, (struct psd_onnx_expr){.function = IDENTITY});
}

/* A function of an expression; NULL if that is NULL or memory runs out. */
static struct psd_onnx_expr *apply(struct psd_onnx *onnx, struct psd_onnx_expr *left, enum function function, double a,
				   double b)
{
	if (function == LINEAR && a == 1 && b == 0)
		return left;
	if (left && function == LINEAR && left->function == LINEAR)
		return apply(onnx, left->left, LINEAR, a * left->a, a * left->b + b);
	return left ? make(onnx, (struct psd_onnx_expr){.function = function, .a = a, .b = b, .left = left}) : NULL;
}

static struct psd_onnx_expr *combine(struct psd_onnx *onnx, enum function function, struct psd_onnx_expr *left,
				     struct psd_onnx_expr *right)
{
	return left && right ? make(onnx, (struct psd_onnx_expr){.function = function, .left = left, .right = right})
			     : NULL;
}

bool psd_onnx_expr_is_product(const struct psd_onnx_expr *expr, double *factor)
{
	*factor = expr->function == LINEAR ? expr->a : 1;
	return expr->function == IDENTITY ||
	       (expr->function == LINEAR && expr->b == 0 && expr->left->function == IDENTITY);
}

static bool are_same_elements(const struct psd_onnx_view *one, const struct psd_onnx_view *other)
{
	return one->layer == other->layer && psd_onnx_view_is_same(one, other);
}

bool psd_onnx_is_square(const struct psd_onnx_value *square, const struct psd_onnx_value *of)
{
	const struct psd_onnx_expr *expr = square->expr;
	const bool is_power = expr->function == POWER && expr->a == 2 && expr->left == of->expr;
	const bool is_product = expr->function == PRODUCT && expr->left == of->expr && expr->right == of->expr;

	return (is_power || is_product) && are_same_elements(&square->view, &of->view);
}

/* ---- layers ---- */

/* Kind and settings of the layer that computes a function of one expression; NULL: psd has none. */
static const struct psd_layer_kind *kind_of(const struct psd_onnx_expr *expr, union psd_layer_settings *settings)
{
	switch (expr->function) {
	case LINEAR:
		settings->linear = (struct psd_linear_settings){.factor = expr->a, .summand = expr->b};
		return &psd_layer_affine;
	case POWER: settings->power.exponent = expr->a; return &psd_layer_power;
	case SIGMOID: return &psd_layer_sigmoid;
	case TANH: return &psd_layer_tanh;
	case EXP: return &psd_layer_exp;
	case LOG: return &psd_layer_log;
	case ABS: return &psd_layer_abs;
	case RELU: settings->slope.slope = expr->a; return &psd_layer_relu;
	case ELU: settings->slope.slope = expr->a; return &psd_layer_elu;
	case CLIP: settings->linear.factor = expr->a; return &psd_layer_clip;
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

static bool is_function_of(const struct psd_onnx_expr *expr, double function(double x), const struct psd_onnx_expr *of)
{
	for (unsigned p = 0; p < POINTS; p++) {
		const double value = function(of->table[p]);

		if (!(fabs(expr->table[p] - value) <= 1e-5 * (1 + fabs(value))))
			return false;
	}
	return true;
}

/* Functions with a layer that exporters decompose. */
static const struct {
	double (*function)(double x);
	const struct psd_layer_kind *kind;
	bool is_tanh;
} composites[] = {
	{gelu, &psd_layer_gelu, false},
	{gelu_tanh, &psd_layer_gelu, true},
	{silu, &psd_layer_silu, false},
};

/* Innermost part of an expression of which it is composite function i; NULL: there is none. */
static struct psd_onnx_expr *find_argument(const struct psd_onnx_expr *expr, struct psd_onnx_expr *part, unsigned i)
{
	struct psd_onnx_expr *found = NULL;

	if (part->left)
		found = find_argument(expr, part->left, i);
	if (!found && part->right && part->right != part->left)
		found = find_argument(expr, part->right, i);
	return found || part == expr || !is_function_of(expr, composites[i].function, part) ? found : part;
}

static enum psd_status make_layer(struct psd_onnx *onnx, struct psd_onnx_expr *expr, unsigned base, unsigned *layer);

static enum psd_status make_composite(struct psd_onnx *onnx, struct psd_onnx_expr *expr, unsigned base, bool *is_made,
				      unsigned *layer)
{
	*is_made = false;
	for (unsigned i = 0; i < sizeof(composites) / sizeof(composites[0]); i++) {
		struct psd_onnx_expr *of = find_argument(expr, expr, i);
		union psd_layer_settings settings = composites[i].kind->defaults;
		enum psd_status status;

		if (!of)
			continue;
		*is_made = true;
		if (composites[i].is_tanh)
			settings.gelu.approximation = PSD_GELU_TANH;
		status = make_layer(onnx, of, base, layer);
		return status ? status : psd_onnx_add_simple(onnx, composites[i].kind, &settings, *layer, layer);
	}
	return PSD_OK;
}

static enum psd_status make_of_two(struct psd_onnx *onnx, struct psd_onnx_expr *expr, unsigned base, unsigned *layer)
{
	struct psd_layer_spec spec = {.kind = expr->function == SUM ? &psd_layer_add : &psd_layer_multiply,
				      .n_inputs = 2};
	bool is_made;

	PSD_TRY(make_composite(onnx, expr, base, &is_made, layer));
	if (is_made)
		return PSD_OK;
	spec.settings = spec.kind->defaults;
	PSD_TRY(make_layer(onnx, expr->left, base, &spec.inputs[0]));
	PSD_TRY(make_layer(onnx, expr->right, base, &spec.inputs[1]));
	return psd_onnx_add(onnx, &spec, NULL, layer);
}

static enum psd_status make_new_layer(struct psd_onnx *onnx, struct psd_onnx_expr *expr, unsigned base, unsigned *layer)
{
	union psd_layer_settings settings;
	enum psd_status status = PSD_OK;

	memset(&settings, 0, sizeof(settings));
	const struct psd_layer_kind *kind = kind_of(expr, &settings);
	if (expr->right) {
		status = make_of_two(onnx, expr, base, layer);
	} else if (kind) {
		bool is_made = false;

		if (expr->function == LINEAR)
			status = make_composite(onnx, expr, base, &is_made, layer);
		if (!status && !is_made)
			status = make_layer(onnx, expr->left, base, layer);
		if (!status && !is_made)
			status = psd_onnx_add_simple(onnx, kind, &settings, *layer, layer);
	} else {
		return psd_onnx_refuse(onnx, "needs the error function, which psd has only within GELU");
	}
	return status;
}

static enum psd_status make_layer(struct psd_onnx *onnx, struct psd_onnx_expr *expr, unsigned base, unsigned *layer)
{
	const Onnx__Node *node = onnx->node;

	*layer = expr->function == IDENTITY ? base : expr->made;
	if (expr->function == IDENTITY || (expr->is_made && expr->base == base))
		return PSD_OK;
	onnx->node = expr->node;
	const enum psd_status status = make_new_layer(onnx, expr, base, layer);
	onnx->node = node;
	expr->is_made = !status;
	expr->base = base;
	expr->made = *layer;
	return status;
}

enum psd_status psd_onnx_materialize(struct psd_onnx *onnx, struct psd_onnx_value *data)
{
	if (data->rotary_base > 0)
		return psd_onnx_refuse(onnx, "has a rotated input, which only attention can read");
	if (data->expr->function == IDENTITY)
		return PSD_OK;
	PSD_TRY(psd_onnx_make_whole(onnx, &data->view));
	PSD_TRY(make_layer(onnx, data->expr, data->view.layer, &data->view.layer));
	data->is_integer = false;
	data->expr = psd_onnx_expr_new(onnx);
	return data->expr ? PSD_OK : psd_onnx_no_memory(onnx);
}

enum psd_status psd_onnx_invert(struct psd_onnx *onnx, struct psd_onnx_value *data, bool is_quotient)
{
	data->expr = apply(onnx, data->expr, is_quotient ? POWER : LINEAR, -1, 0);
	return data->expr ? PSD_OK : psd_onnx_no_memory(onnx);
}

/* ---- nodes that are functions ---- */

/* max(x, low) and min(x, high), by a rectifier. */
static struct psd_onnx_expr *not_below(struct psd_onnx *onnx, struct psd_onnx_expr *x, double low)
{
	return apply(onnx, apply(onnx, apply(onnx, x, LINEAR, 1, -low), RELU, 0, 0), LINEAR, 1, low);
}

static struct psd_onnx_expr *not_above(struct psd_onnx *onnx, struct psd_onnx_expr *x, double high)
{
	return apply(onnx, apply(onnx, apply(onnx, x, LINEAR, -1, high), RELU, 0, 0), LINEAR, -1, high);
}

/* Finds a limit in an input or, in old files, in an attribute. */
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
			return psd_onnx_refuse(onnx, "has a limit that must be a constant number");
	return PSD_OK;
}

static struct psd_onnx_expr *clip(struct psd_onnx *onnx, struct psd_onnx_expr *x)
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
	return apply(onnx, apply(onnx, apply(onnx, x, LINEAR, 1, -low), CLIP, high - low, 0), LINEAR, 1, low);
}

static struct psd_onnx_expr *hard_sigmoid(struct psd_onnx *onnx, struct psd_onnx_expr *x, double a, double b)
{
	return apply(onnx, apply(onnx, x, LINEAR, a, b), CLIP, 1, 0);
}

/* Functions of one input. NULL if the function is not known or, with *is_known, if memory runs out. */
static struct psd_onnx_expr *unary(struct psd_onnx *onnx, struct psd_onnx_expr *x, bool *is_known)
{
	static const struct {
		const char *op;
		enum function function;
		double a, b;
		const char *attribute; /* overrides a; NULL: none */
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
			return apply(onnx, x, plain[i].function,
				     plain[i].attribute ? psd_onnx_number(onnx, plain[i].attribute, plain[i].a)
							: plain[i].a,
				     plain[i].b);
	if (!strcmp(op, "Gelu"))
		return apply(onnx, x, psd_onnx_text_is(onnx, "approximate", "tanh") ? GELU_TANH : GELU, 0, 0);
	if (!strcmp(op, "Clip"))
		return clip(onnx, x);
	if (!strcmp(op, "HardSigmoid"))
		return hard_sigmoid(onnx, x, psd_onnx_number(onnx, "alpha", 0.2), psd_onnx_number(onnx, "beta", 0.5));
	if (!strcmp(op, "HardSwish"))
		return combine(onnx, PRODUCT, x, hard_sigmoid(onnx, x, 1.0 / 6, 0.5));
	if (!strcmp(op, "Swish"))
		return combine(
			onnx, PRODUCT, x,
			apply(onnx, apply(onnx, x, LINEAR, psd_onnx_number(onnx, "alpha", 1), 0), SIGMOID, 0, 0));
	if (!strcmp(op, "Mish"))
		return combine(onnx, PRODUCT, x, apply(onnx, apply(onnx, x, SOFTPLUS, 0, 0), TANH, 0, 0));
	if (!strcmp(op, "Celu")) { /* a (e^(x / a) - 1) below 0 */
		const double a = psd_onnx_number(onnx, "alpha", 1);

		return apply(onnx, apply(onnx, apply(onnx, x, LINEAR, 1 / a, 0), ELU, 1, 0), LINEAR, a, 0);
	}
	if (!strcmp(op, "Softsign"))
		return combine(onnx, PRODUCT, x,
			       apply(onnx, apply(onnx, apply(onnx, x, ABS, 0, 0), LINEAR, 1, 1), POWER, -1, 0));
	if (!strcmp(op, "Selu"))
		return apply(onnx, apply(onnx, x, ELU, psd_onnx_number(onnx, "alpha", 1.67326319), 0), LINEAR,
			     psd_onnx_number(onnx, "gamma", 1.05070102), 0);
	*is_known = false;
	return NULL;
}

/* Functions of an element and a number, which comes first if is_second. */
static struct psd_onnx_expr *with_number(struct psd_onnx *onnx, struct psd_onnx_expr *x, double number, bool is_second,
					 bool *is_known)
{
	const char *op = onnx->node->op_type;

	*is_known = true;
	if (!strcmp(op, "Add"))
		return apply(onnx, x, LINEAR, 1, number);
	if (!strcmp(op, "Mul"))
		return apply(onnx, x, LINEAR, number, 0);
	if (!strcmp(op, "Sub"))
		return is_second ? apply(onnx, x, LINEAR, -1, number) : apply(onnx, x, LINEAR, 1, -number);
	if (!strcmp(op, "Div"))
		return is_second ? apply(onnx, apply(onnx, x, POWER, -1, 0), LINEAR, number, 0)
				 : apply(onnx, x, LINEAR, 1 / number, 0);
	if (!strcmp(op, "Pow") && !is_second)
		return apply(onnx, x, POWER, number, 0);
	if (!strcmp(op, "Max"))
		return not_below(onnx, x, number);
	if (!strcmp(op, "Min"))
		return not_above(onnx, x, number);
	*is_known = false;
	return NULL;
}

/* Functions of two expressions of the same elements. */
static struct psd_onnx_expr *with_itself(struct psd_onnx *onnx, struct psd_onnx_expr *x, struct psd_onnx_expr *y,
					 bool *is_known)
{
	const char *op = onnx->node->op_type;

	*is_known = true;
	if (!strcmp(op, "Add"))
		return combine(onnx, SUM, x, y);
	if (!strcmp(op, "Sub"))
		return combine(onnx, SUM, x, apply(onnx, y, LINEAR, -1, 0));
	if (!strcmp(op, "Mul"))
		return combine(onnx, PRODUCT, x, y);
	if (!strcmp(op, "Div"))
		return combine(onnx, PRODUCT, x, apply(onnx, y, POWER, -1, 0));
	*is_known = false;
	return NULL;
}

enum psd_status psd_onnx_try_function(struct psd_onnx *onnx, bool *is_done)
{
	struct psd_onnx_value *first = psd_onnx_input(onnx, 0), *second = psd_onnx_input(onnx, 1);
	const bool is_second = first->kind == PSD_ONNX_CONSTANT;
	struct psd_onnx_value *data = is_second ? second : first, *other = is_second ? first : second;
	struct psd_onnx_expr *expr = NULL;
	double number;

	*is_done = false;
	if (data->kind != PSD_ONNX_DATA)
		return PSD_OK;
	if (!strcmp(onnx->node->op_type, "Clip"))
		PSD_TRY(check_limits(onnx));
	if (data->expr->depth > DEPTH_MAX)
		PSD_TRY(psd_onnx_materialize(onnx, data));
	if (other->kind == PSD_ONNX_DATA && other->expr->depth > DEPTH_MAX)
		PSD_TRY(psd_onnx_materialize(onnx, other));
	if (!is_second)
		expr = unary(onnx, data->expr, is_done);
	if (!*is_done && onnx->node->n_input == 2 && psd_onnx_is_scalar(onnx, other, &number) &&
	    other->n_dims <= data->view.n_axes)
		expr = with_number(onnx, data->expr, number, is_second, is_done);
	if (!*is_done && onnx->node->n_input == 2 && other->kind == PSD_ONNX_DATA && data->rotary_base == 0 &&
	    other->rotary_base == 0 && are_same_elements(&data->view, &other->view))
		expr = with_itself(onnx, data->expr, other->expr, is_done);
	if (*is_done && !expr)
		return psd_onnx_no_memory(onnx);
	if (*is_done) {
		struct psd_onnx_value result = *data;

		result.expr = expr;
		*psd_onnx_output(onnx, 0) = result;
	}
	return PSD_OK;
}
