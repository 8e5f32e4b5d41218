/* Kernel bodies of layers for sequences (transformers), and of softmax with loss. kernels.h describes their
 * arguments. */
#ifndef PSD_REAL_GPU_BODIES_SEQUENCES_H
#define PSD_REAL_GPU_BODIES_SEQUENCES_H

#include "real/device/gpu/values.h"

/* Returns the sum of the PSD_GPU_PARTS partial results of one position or row, added in order. */
PSD_BODY float psd_sum_parts(const float *parts)
{
	float sum = 0.0f;

	for (uint32_t p = 0; p < PSD_GPU_PARTS; p++)
		sum += parts[p];
	return sum;
}

/* ---- softmax with loss ---- */

PSD_BODY void psd_loss_largest_at(uint64_t i, const struct psd_gpu_loss *loss)
{
	const struct psd_part part = psd_part_of(loss->channel, i);
	const uint32_t first = psd_first_at(loss->channel, part.position);
	uint32_t likely = part.number;
	float largest = -INFINITY;

	for (uint32_t c = part.number; c < loss->channel.channels; c += PSD_GPU_PARTS) {
		const float score = psd_get(loss->scores, first + c * loss->channel.inner);

		if (score > largest) {
			largest = score;
			likely = c;
		}
	}
	loss->largest[psd_part_at(part)] = largest;
	loss->likely_classes[psd_part_at(part)] = likely;
}

/* Returns the index of the part of a position's classes that has the largest score. If several parts have it, it is the
 * part with the lowest class. */
PSD_BODY uint64_t psd_largest_part(const struct psd_gpu_loss *loss, uint32_t position)
{
	const uint64_t first = (uint64_t)position * PSD_GPU_PARTS;
	uint64_t best = first;

	for (uint64_t p = first + 1; p < first + PSD_GPU_PARTS; p++)
		if (loss->largest[p] > loss->largest[best] ||
		    (loss->largest[p] == loss->largest[best] && loss->likely_classes[p] < loss->likely_classes[best]))
			best = p;
	return best;
}

PSD_BODY void psd_loss_exponents_at(uint64_t i, const struct psd_gpu_loss *loss)
{
	const struct psd_part part = psd_part_of(loss->channel, i);
	const uint32_t first = psd_first_at(loss->channel, part.position);
	const float largest = loss->largest[psd_largest_part(loss, part.position)];
	double sum = 0.0;

	for (uint32_t c = part.number; c < loss->channel.channels; c += PSD_GPU_PARTS) {
		const uint32_t at = first + c * loss->channel.inner;
		const float exponent = expf(psd_get(loss->scores, at) - largest);

		loss->exponents[at] = exponent;
		sum += (double)exponent;
	}
	loss->partial_sums[psd_part_at(part)] = sum;
}

/* Computes the sum of the exponentials, the loss and is_correct of one position. Kernel indices: positions. */
PSD_BODY void psd_loss_end_at(uint64_t i, const struct psd_gpu_loss *loss)
{
	const uint64_t best = psd_largest_part(loss, (uint32_t)i);
	const uint32_t label = (uint32_t)loss->labels[i];
	const uint32_t at = psd_first_at(loss->channel, (uint32_t)i) + label * loss->channel.inner;
	double sum = 0.0;

	for (uint32_t p = 0; p < PSD_GPU_PARTS; p++)
		sum += loss->partial_sums[i * PSD_GPU_PARTS + p];
	loss->sums[i] = sum;
	loss->losses[i] = log(sum) - ((double)psd_get(loss->scores, at) - (double)loss->largest[best]);
	loss->is_correct[i] = loss->likely_classes[best] == label;
}

PSD_BODY void psd_loss_back_at(uint64_t i, const struct psd_gpu_loss_back *of)
{
	const uint32_t position = psd_position_number(of->loss.channel, (uint32_t)i);
	const uint32_t class_number = psd_channel_of(of->loss.channel, (uint32_t)i);
	const float probability = (float)((double)of->loss.exponents[i] / of->loss.sums[position]);
	const float wanted = class_number == (uint32_t)of->loss.labels[position] ? 1.0f : 0.0f;

	psd_give(of->to, i, of->weight * (probability - wanted), of->adds);
}

/* ---- embedding, position embedding, learned first positions ---- */

PSD_BODY void psd_embedding_at(uint64_t i, const struct psd_gpu_embedding *of)
{
	const uint64_t token = (uint64_t)of->tokens[psd_position_number(of->channel, (uint32_t)i)];

	psd_put(of->to, i, of->table[token * of->channel.channels + psd_channel_of(of->channel, (uint32_t)i)]);
}

PSD_BODY void psd_token_chains_at(uint64_t i, const struct psd_gpu_token_chains *of)
{
	const float token = of->tokens[i];
	uint32_t next = (uint32_t)i + 1, before = 0;

	while (next < of->n_positions && of->tokens[next] != token)
		next++;
	while (before < i && of->tokens[before] != token)
		before++;
	of->next[i] = next;
	of->is_first[i] = before == i;
}

PSD_BODY void psd_embedding_back_at(uint64_t i, const struct psd_gpu_embedding_back *of)
{
	const uint32_t channel = psd_channel_of(of->channel, (uint32_t)i);
	uint32_t position = psd_position_number(of->channel, (uint32_t)i);
	const uint64_t token = (uint64_t)of->tokens[position];
	float sum = 0.0f;

	if (!of->is_first[position])
		return;
	for (; position < of->n_positions; position = of->next[position])
		sum += psd_get(of->diff, psd_first_at(of->channel, position) + channel * of->channel.inner);
	of->dtable[token * of->channel.channels + channel] = of->scale * sum;
}

PSD_BODY uint32_t psd_plain_at(struct psd_gpu_channel channel, uint32_t positions, uint32_t i)
{
	return psd_channel_of(channel, i) * positions + psd_position_number(channel, i) % positions;
}

PSD_BODY void psd_position_at(uint64_t i, const struct psd_gpu_position *of)
{
	psd_put(of->to, i, psd_get(of->from, i) + of->weight[psd_plain_at(of->channel, of->positions, (uint32_t)i)]);
}

PSD_BODY void psd_position_back_at(uint64_t i, const struct psd_gpu_position_back *of)
{
	const uint64_t elements = (uint64_t)of->positions * of->channel.channels;
	float sum = 0.0f;

	for (uint32_t n = 0; n < of->batch; n++)
		sum += psd_get(of->diff, n * elements + i);
	of->dweight[psd_plain_at(of->channel, of->positions, (uint32_t)i)] = of->scale * sum;
}

PSD_BODY void psd_prefix_back_at(uint64_t i, const struct psd_gpu_prefix_back *of)
{
	const uint32_t channel = (uint32_t)i / of->own, position = (uint32_t)i % of->own;
	float sum = 0.0f;

	for (uint32_t n = 0; n < of->batch; n++)
		sum += psd_get(of->diff,
			       psd_first_at(of->channel, n * of->positions + position) + channel * of->channel.inner);
	of->dweight[i] = of->scale * sum;
}

/* ---- layer norm: normalisation of each position ---- */

/* Sets one element of partial[0] to a partial sum of the position's values. This kernel is not launched if is_centred
 * is false. */
PSD_BODY void psd_layer_norm_sums_at(uint64_t i, const struct psd_gpu_layer_norm *norm)
{
	const struct psd_part part = psd_part_of(norm->channel, i);
	const uint32_t first = psd_first_at(norm->channel, part.position);
	float sum = 0.0f;

	for (uint32_t c = part.number; c < norm->channel.channels; c += PSD_GPU_PARTS)
		sum += psd_get(norm->from, first + c * norm->channel.inner);
	norm->partial[0][psd_part_at(part)] = sum;
}

/* Returns the mean over the channels of a position, computed from the position's partial sums in `partial`. */
PSD_BODY float psd_position_mean(const struct psd_gpu_layer_norm *norm, const float *partial, uint32_t position)
{
	return psd_sum_parts(partial + (uint64_t)position * PSD_GPU_PARTS) / (float)norm->channel.channels;
}

/* Computes the mean of a position. Sets one element of partial[1] to a partial sum of the squared differences between
 * values and mean. All parts of a position compute the same mean; part 0 stores it. */
PSD_BODY void psd_layer_norm_squares_at(uint64_t i, const struct psd_gpu_layer_norm *norm)
{
	const struct psd_part part = psd_part_of(norm->channel, i);
	const uint32_t first = psd_first_at(norm->channel, part.position);
	const float mean = norm->is_centred ? psd_position_mean(norm, norm->partial[0], part.position) : 0.0f;
	float sum = 0.0f;

	for (uint32_t c = part.number; c < norm->channel.channels; c += PSD_GPU_PARTS) {
		const float centred = psd_get(norm->from, first + c * norm->channel.inner) - mean;

		sum += centred * centred;
	}
	norm->partial[1][psd_part_at(part)] = sum;
	if (part.number == 0)
		norm->mean[part.position] = mean;
}

PSD_BODY void psd_layer_norm_end_at(uint64_t i, const struct psd_gpu_layer_norm *norm)
{
	const struct psd_part part = psd_part_of(norm->channel, i);
	const uint32_t first = psd_first_at(norm->channel, part.position);
	const float mean = norm->mean[part.position];
	const float inverse = 1.0f / sqrtf(psd_position_mean(norm, norm->partial[1], part.position) + norm->epsilon);

	for (uint32_t c = part.number; c < norm->channel.channels; c += PSD_GPU_PARTS) {
		const uint32_t at = first + c * norm->channel.inner;

		psd_put(norm->to, at,
			(psd_get(norm->from, at) - mean) * inverse * psd_entry(norm->gamma, c, 1.0f) +
				psd_entry(norm->beta, c, 0.0f));
	}
	if (part.number == 0)
		norm->inverse[part.position] = inverse;
}

PSD_BODY void psd_layer_norm_dots_at(uint64_t i, const struct psd_gpu_layer_norm *norm)
{
	const struct psd_part part = psd_part_of(norm->channel, i);
	const uint32_t first = psd_first_at(norm->channel, part.position);
	const float mean = norm->mean[part.position], inverse = norm->inverse[part.position];
	float sum = 0.0f, product = 0.0f;

	for (uint32_t c = part.number; c < norm->channel.channels; c += PSD_GPU_PARTS) {
		const uint32_t at = first + c * norm->channel.inner;
		const float scaled = psd_get(norm->diff, at) * psd_entry(norm->gamma, c, 1.0f);

		sum += scaled;
		product += scaled * (psd_get(norm->from, at) - mean) * inverse;
	}
	norm->partial[0][psd_part_at(part)] = sum;
	norm->partial[1][psd_part_at(part)] = product;
}

/* Gradient of layer norm: inverse * (g - mean(g) - x * mean(g * x)), where x is the normalised value and g = diff *
 * gamma. If is_centred is false, mean(g) is left out. */
PSD_BODY void psd_layer_norm_back_at(uint64_t i, const struct psd_gpu_layer_norm *norm)
{
	const struct psd_part part = psd_part_of(norm->channel, i);
	const uint32_t first = psd_first_at(norm->channel, part.position);
	const float mean = norm->mean[part.position], inverse = norm->inverse[part.position];
	const float mean_diff = norm->is_centred ? psd_position_mean(norm, norm->partial[0], part.position) : 0.0f;
	const float mean_product = psd_position_mean(norm, norm->partial[1], part.position);

	for (uint32_t c = part.number; c < norm->channel.channels; c += PSD_GPU_PARTS) {
		const uint32_t at = first + c * norm->channel.inner;
		const float scaled = psd_get(norm->diff, at) * psd_entry(norm->gamma, c, 1.0f);
		const float normalised = (psd_get(norm->from, at) - mean) * inverse;

		psd_give(norm->to, at, inverse * (scaled - mean_diff - normalised * mean_product), norm->adds);
	}
}

/* ---- attention ---- */

/* Sets to[0] to the cosine and to[1] to the sine of an angle. rounds: the angle in full turns. It uses the Taylor
 * series up to the 11th power around the nearest quarter turn, because sinf() and cosf() use slow local memory for
 * large angles. */
PSD_BODY void psd_cosine_and_sine(double rounds, float to[2])
{
	const double quarters = rint(4.0 * rounds), angle = (rounds - quarters / 4.0) * 6.283185307179586;
	const int quarter = (int)(quarters - 4.0 * floor(quarters / 4.0));
	double sine = 1.0, cosine = 1.0;

	for (int n = 11; n > 1; n -= 2) {
		sine = 1.0 - angle * angle / (double)(n * (n - 1)) * sine;
		cosine = 1.0 - angle * angle / (double)((n - 1) * (n - 2)) * cosine;
	}
	sine *= angle;
	to[0] = (float)(quarter == 0 ? cosine : quarter == 1 ? -sine : quarter == 2 ? -cosine : sine);
	to[1] = (float)(quarter == 0 ? sine : quarter == 1 ? cosine : quarter == 2 ? -sine : -cosine);
}

PSD_BODY void psd_rotary_angles_at(uint64_t i, const struct psd_gpu_rotary_angles *of)
{
	const double share = (double)(i % of->half) / (double)of->half, position = (double)(i / of->half);

	psd_cosine_and_sine(position * exp(-share * of->base_log) / 6.283185307179586, of->angles + 2 * i);
}

/* Rotates one pair of channels, for rotary position embedding (psd_gpu_rotary). Adjacent indices read adjacent
 * elements. */
PSD_BODY void psd_rotary_at(uint64_t i, const struct psd_gpu_rotary *of)
{
	const uint32_t inner = of->from_channel.inner, rest = (uint32_t)i / inner, k = rest % of->half;
	const uint32_t position = rest / of->half / of->heads * inner + (uint32_t)i % inner;
	const uint32_t first = rest / of->half % of->heads * 2 * of->half + k, second = first + of->half;
	const uint32_t from = psd_first_at(of->from_channel, position), to = psd_first_at(of->to_channel, position);
	const float *angle = of->angles + 2 * ((uint64_t)(position % of->positions) * of->half + k);
	const float cosine = angle[0], sine = of->is_back ? -angle[1] : angle[1];
	const float x = psd_get(of->from, from + first * inner), y = psd_get(of->from, from + second * inner);

	psd_give(of->to, to + first * inner, x * cosine - y * sine, of->adds);
	psd_give(of->to, to + second * inner, x * sine + y * cosine, of->adds);
}

/* Returns the number of columns that a row uses: all columns or, if is_causal, the columns up to the row's own
 * position. */
PSD_BODY uint32_t psd_visible_of(const struct psd_gpu_attention *attention, uint64_t row)
{
	return attention->is_causal ? (uint32_t)(row % attention->positions) + 1 : attention->positions;
}

/* Sets partial[0] to the largest score of a part of a row, and partial[1] to the part's sum of exp(score - largest
 * score). For a part without columns it writes -infinity and 0. */
PSD_BODY void psd_attention_sums_at(uint64_t i, const struct psd_gpu_attention *attention)
{
	const uint64_t row = i / PSD_GPU_PARTS, first = row * attention->positions;
	const uint32_t number = (uint32_t)(i % PSD_GPU_PARTS), visible = psd_visible_of(attention, row);
	float largest = -INFINITY, sum = 0.0f;

	for (uint32_t c = number; c < visible; c += PSD_GPU_PARTS)
		largest = fmaxf(largest, psd_get(attention->rows, first + c));
	for (uint32_t c = number; c < visible; c += PSD_GPU_PARTS)
		sum += expf(psd_get(attention->rows, first + c) - largest);
	attention->partial[0][i] = largest;
	attention->partial[1][i] = sum;
}

/* Replaces attention scores by probabilities. Every row uses at least its first column, so the largest score of a row
 * is finite. */
PSD_BODY void psd_attention_end_at(uint64_t i, const struct psd_gpu_attention *attention)
{
	const uint64_t row = i / PSD_GPU_PARTS, first = row * attention->positions;
	const uint32_t number = (uint32_t)(i % PSD_GPU_PARTS), visible = psd_visible_of(attention, row);
	const float *largests = attention->partial[0] + row * PSD_GPU_PARTS;
	const float *sums = attention->partial[1] + row * PSD_GPU_PARTS;
	float largest = -INFINITY, sum = 0.0f;

	for (uint32_t p = 0; p < PSD_GPU_PARTS; p++)
		largest = fmaxf(largest, largests[p]);
	for (uint32_t p = 0; p < PSD_GPU_PARTS; p++)
		sum += sums[p] * expf(largests[p] - largest);
	for (uint32_t c = number; c < attention->positions; c += PSD_GPU_PARTS)
		psd_put(attention->rows, first + c,
			c < visible ? expf(psd_get(attention->rows, first + c) - largest) / sum : 0.0f);
}

PSD_BODY void psd_attention_dots_at(uint64_t i, const struct psd_gpu_attention *attention)
{
	const uint64_t row = i / PSD_GPU_PARTS, first = row * attention->positions;
	const uint32_t visible = psd_visible_of(attention, row);
	float sum = 0.0f;

	for (uint32_t c = (uint32_t)(i % PSD_GPU_PARTS); c < visible; c += PSD_GPU_PARTS)
		sum += psd_get(attention->rows, first + c) * psd_get(attention->diff, first + c);
	attention->partial[0][i] = sum;
}

PSD_BODY void psd_attention_back_at(uint64_t i, const struct psd_gpu_attention *attention)
{
	const uint64_t row = i / PSD_GPU_PARTS, first = row * attention->positions;
	const uint32_t visible = psd_visible_of(attention, row);
	const float sum = psd_sum_parts(attention->partial[0] + row * PSD_GPU_PARTS);

	for (uint32_t c = (uint32_t)(i % PSD_GPU_PARTS); c < attention->positions; c += PSD_GPU_PARTS) {
		const uint64_t at = first + c;
		float value = 0.0f;

		if (c < visible)
			value = psd_get(attention->rows, at) * (psd_get(attention->diff, at) - sum);
		psd_put(attention->diff, at, value);
	}
}

#endif
