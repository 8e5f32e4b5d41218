/* New scenarios from answers on the command line, and scenarios that are installed beside the program. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli_helper.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

#define NEEDED "--model resnet50 --nodes 12 --bandwidth 25Gbit/s"

static struct run run(const char *arguments, const char *redirections)
{
	return run_program("psd-sim", arguments, redirections);
}

/* The scenario on standard output is predicted by a second psd-sim. */
static struct run predict_new(const char *answers)
{
	char command[4 * PATH_MAX];

	snprintf(command, sizeof(command), "%s init %s | %s --csv --estimate /dev/stdin 2>&1", path_of("psd-sim").text,
		 answers, path_of("psd-sim").text);
	return run_command(command);
}

static unsigned lines_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Rows: a head, and two methods at 1, 2, 4, 8 and 12 nodes. */
Test(init, a_new_scenario_is_predicted)
{
	static const struct {
		const char *answers, *words;
		unsigned n_lines;
	} cases[] = {
		{NEEDED, "resnet50 on 12 nodes at 25Gbit/s,ring,estimate,1,1,25000000000,", 11},
		{NEEDED, ",ps,estimate,12,12,25000000000,", 11},
		{NEEDED " --workers 8 --device V100 --batch 64", ",ring,estimate,12,96,25000000000,", 11},
		{NEEDED " --stack mpi --latency 5us --sync ps", ",ps,estimate,12,12,", 6},
		{"--model scenarios/models/mlp.yaml --nodes 1 --bandwidth 1Gbps --sync "
		 "two-level,ring,auto,nccl,mpi,sfb",
		 "mlp.yaml on 1 nodes at 1Gbps,sfb,", 7},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run made = predict_new(cases[i].answers);

		cr_expect_eq(made.exit_status, 0, "%s: %s", cases[i].answers, made.text);
		cr_expect_not_null(strstr(made.text, cases[i].words), "%s: %s", cases[i].answers, made.text);
		if (cases[i].n_lines)
			cr_expect_eq(lines_of(made.text), cases[i].n_lines, "%s", made.text);
		free(made.text);
	}
}

Test(init, a_name_of_a_model_needs_no_separators)
{
	static const char *const names[] = {"resnet50", "ResNet-50", "gpt_2"}, *const files[] = {"resnet50", "resnet50",
												 "gpt2"};

	for (unsigned i = 0; i < 3; i++) {
		char arguments[128], file[64];

		snprintf(arguments, sizeof(arguments), "init --model %s --nodes 4 --bandwidth 1Gbps", names[i]);
		snprintf(file, sizeof(file), "/models/%s.yaml\"", files[i]);
		struct run made = run(arguments, "2>&1");

		cr_expect_not_null(strstr(made.text, file), "%s: %s", names[i], made.text);
		free(made.text);
	}
}

/* A key's line, but for those of later systems, which begin with a dash or repeat the first one's. */
Test(init, each_key_has_a_comment_above_it)
{
	struct run made = run("init " NEEDED " --stack mpi", "");
	bool is_commented = false;
	unsigned n_keys = 0;

	for (const char *line = made.text; *line; line += strcspn(line, "\n") + 1) {
		const char *word = line + strspn(line, " ");
		const bool is_key = *word != '#' && *word != '-' && *word != '\n';

		cr_expect_leq(strcspn(line, "\n"), strstr(line, "$schema") == line + 24 ? 300 : 80, "%.80s", line);
		if (is_key && strncmp(word, "sync: ps", 8) != 0)
			cr_expect(is_commented, "%.40s", line);
		n_keys += is_key;
		is_commented = *word == '#' || *word == '-';
	}
	cr_expect_gt(n_keys, 15, "%s", made.text);
	free(made.text);
}

FOLDER_TEST(init, a_file_is_written_whole, scratch_folder_make())
{
	char arguments[2 * PATH_MAX];
	struct run made, predicted, refused;

	snprintf(arguments, sizeof(arguments),
		 "init --model scenarios/models/mlp.yaml --nodes 4 --bandwidth 1Gbps -o %s/new.yaml", folder.path);
	made = run(arguments, "2>&1");
	cr_expect_str_eq(made.text, "");
	snprintf(arguments, sizeof(arguments), "--csv --estimate %s/new.yaml", folder.path);
	predicted = run(arguments, "2>&1");
	cr_expect_eq(predicted.exit_status, 0, "%s", predicted.text);
	snprintf(arguments, sizeof(arguments), "init " NEEDED " -o %s/none/new.yaml", folder.path);
	refused = run(arguments, "2>&1");
	cr_expect_eq(refused.exit_status, 2, "%s", refused.text);
	free(made.text);
	free(predicted.text);
	free(refused.text);
}

Test(init, a_wrong_answer_is_one_line)
{
	static const struct {
		const char *arguments, *words;
	} mistakes[] = {
		{"init --model nosuch --nodes 2 --bandwidth 1Gbps",
		 "there is no installed model 'nosuch', must be one "},
		{"init --model resnet50 --nodes 0 --bandwidth 1Gbps",
		 "'--nodes' is '0', must be a whole number from 1"},
		{"init --model resnet50 --nodes 2 --bandwidth 1G", "'--bandwidth' is '1G', must be a rate such as"},
		{"init " NEEDED " --device b100", "'--device' is 'b100', must be one of: k20, "},
		{"init " NEEDED " --latency 3", "'--latency' is '3', must be a time such as"},
		{"init " NEEDED " --batch many", "'--batch' is 'many', must be a whole number"},
		{"init " NEEDED " --workers 65", "'--workers' is '65', must be a whole number from 1 to 64"},
		{"init " NEEDED " --stack tcp", "'--stack' is 'tcp', must be one of: ideal, "},
		{"init " NEEDED " --sync ring,foo", "'--sync' is 'foo', must be one of: ps, "},
		{"init " NEEDED " --sync ring,ring", "'--sync' has 'ring' twice"},
		{"init " NEEDED " --sync ,", "'--sync' is empty, must be one of: ps, "},
		{"init --nodes 2 --model resnet50", "'psd-sim init' needs '--bandwidth RATE', see psd-sim init --help"},
		{"init " NEEDED " file.yaml", "'file.yaml' is one too many, psd-sim init takes options alone"},
		{"quickstart nosuch", "there is no installed scenario 'nosuch', `psd-sim quickstart` lists them"},
		{"quickstart alexnet", "'alexnet' is the end of 3 names, must be one of them: execute/alexnet, "},
		{"quickstart models/resnet50", "there is no installed scenario 'models/resnet50'"},
		{"quickstart gpt2 fusion", "'fusion' is one too many, psd-sim quickstart takes one [NAME]"},
		{"--nodes=2 scenarios/quickstart.yaml",
		 "'--nodes' is an option of 'psd-sim init', not of 'psd-sim', say "},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		expect_one_line("psd-sim", mistakes[i].arguments, 2, mistakes[i].words);
}

/* ---- installed scenarios ---- */

/* From another folder, as a user has it. */
static struct run run_elsewhere(const char *folder, const char *arguments)
{
	char command[4 * PATH_MAX];

	snprintf(command, sizeof(command), "cd %s && %s %s 2>&1", folder, path_of("psd-sim").text, arguments);
	return run_command(command);
}

FOLDER_TEST(init, installed_scenarios_are_listed_and_predicted_by_name, scratch_folder_make())
{
	struct run list = run_elsewhere(folder.path, "quickstart"),
		   named = run_elsewhere(folder.path, "quickstart job --csv --estimate"),
		   whole = run_elsewhere(folder.path, "--csv --estimate quickstart poseidon-2015/alexnet.yaml"),
		   there = run("--csv --estimate scenarios/poseidon-2015/alexnet.yaml", "2>&1");

	cr_expect_not_null(strstr(list.text, "\nquickstart  "), "%s", list.text);
	cr_expect_not_null(strstr(list.text, "\nexamples/job  "), "%s", list.text);
	cr_expect_null(strstr(list.text, "models/"), "%s", list.text);
	cr_expect_eq(named.exit_status, 0, "%s", named.text);
	cr_expect_not_null(strstr(named.text, "90 epochs of ImageNet"), "%s", named.text);
	cr_expect_str_eq(whole.text, there.text);
	free(list.text);
	free(named.text);
	free(whole.text);
	free(there.text);
}

FOLDER_TEST(init, a_copy_predicts_the_same_from_its_folder, scratch_folder_make())
{
	static const char *const names[] = {"poseidon-2015/alexnet", "examples/solver", "examples/onnx", "gpt2"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		char arguments[PATH_MAX];
		struct run copied, again, predicted, there;

		snprintf(arguments, sizeof(arguments), "quickstart %s -o copy-%zu.yaml", names[n], n);
		copied = run_elsewhere(folder.path, arguments);
		again = run_elsewhere(folder.path, arguments);
		snprintf(arguments, sizeof(arguments), "--csv --estimate copy-%zu.yaml", n);
		predicted = run_elsewhere(folder.path, arguments);
		snprintf(arguments, sizeof(arguments), "--csv --estimate scenarios/%s.yaml", names[n]);
		there = run(arguments, "2>&1");
		cr_expect_str_eq(copied.text, "");
		cr_expect_eq(again.exit_status, 2);
		cr_expect_not_null(strstr(again.text, "the file exists, and is not overwritten"), "%s", again.text);
		cr_expect_eq(predicted.exit_status, 0, "%s", predicted.text);
		cr_expect_str_eq(predicted.text, there.text);
		free(copied.text);
		free(again.text);
		free(predicted.text);
		free(there.text);
	}
}
