"""What each file of a run directory holds, and what leaves it there; docs/reference/ has this table."""

from __future__ import annotations

import re
from typing import NamedTuple

from icl_lab.store import layout


class File(NamedTuple):
    """A file, or a folder (name/), of a run directory: {L}, {H} in its name are numbers of a layer and a head.

    `left_by` says which families, flags or commands leave it.
    """

    name: str
    left_by: str
    content: str


EVERY, REGRESSION = "every run", "regression"
META = """`status`: running, done, stopped, diverged or failed; the versions of schema and results; `command`; git
hash, and whether the tree had changes; `versions` of packages; `variables`: environment variables that may change
bits, empty where unset; device, threads, precision, pack width; `kernel` and `kernel_why`; seeds; `start` and
`end`; `compile_seconds`, and `run_seconds` of the training alone; `chunk_steps`; `sources`, hashes of the code, and
`sources_changed`; `keeps_state`, `extends`, `init_from` ([contract](../contract.md#resuming-and-byte-identity));
`bitwise` and `resumed_elsewhere`; `error` of a failed run"""
METRICS = """one JSON object per line, at step 0, every `eval_every` steps, at logarithmically spaced steps and at the
last: `step, train_loss, eval_loss`, and further numbers on the evaluation batch: for regression `eval_gd_loss,
eval_preds_diff, eval_model_diff, eval_model_cos`; for layerwise `eval_gd_loss`; for sine `eval_initial_loss`, the loss
before the context; for diversity the losses and distances `eval_id_...` and `eval_ood_...`; for tokens `eval_losses` by
position and `eval_kl_...`, the mean divergence of the model from each predictor; for functions `eval_id_loss` and
`eval_id_errors` by position, and `eval_ood_...` outside of a pool; with `--log_norms` `train_grad_norm, param_norm,
lr`. Files with the names of earlier versions can be read too"""
SUMMARY = """the last record; `num_steps`; `stopped_early` (`step`, `reason`) if the run ended early; `best` (`step`,
`eval_loss`) with `--keep_best`; `headline` (losses on the test set with standard errors), `trained`,
`loss_convention`; for regression `contexts`, `alignment`, `one_step`, `ood`, `copying`; for sine `functions`; for
layerwise `layerwise`"""
BATCH = """the evaluation batch: `x, y, x_query, y_query, w`; for layerwise and diversity several queries a context
(`x_query` [B,Q,D], `y_query` [B,Q]); for tokens `x` [B,R], the input symbols, and `y_query` [B,T-1], the symbols to
predict; for functions `x, y, x_query` (= `x`), `y_query` (the targets), `member` (of a mixture) and `counted`"""
PREDICTIONS = """predictions on the evaluation batch: for regression `tf, gd` [B]; for sine `before, after` [B]; for
diversity `id_tf, id_dmmse, id_ridge, ood_...` [B,K]; for tokens log-probabilities [B,T-1] of the next symbols: `tf`
and, on the first sequences, each predictor; for functions `id_tf` and, outside of a pool, `ood_tf` [B,K], or logits
[B,K,C]"""
CONTEXTS = """`train` and `eval` settings used, the difficulty used, and whether each had an effect:
`order_had_effect`, `noise_had_effect`, `placement_had_effect`"""
ALIGNMENT = """`l2_pred_diff` (RMS), `align_cos` (= `model_cos`), `preds_diff` (mean absolute), `model_diff`, `slope`
of the model's predictions against gradient descent's, `eta` and how it was chosen"""
OOD = """`alpha, test_mse, gd_test_mse` and their standard errors; `labels`: `scaled` if they follow the scaled
inputs, else `kept`"""
SHIFTS = """`shift, predictor, loss, loss_se`; `closed_form`: the expected loss of the preconditioned step, or the
`reason` that it has none"""
ON_CORRUPTED = """losses of baselines that know how pairs are corrupted: `gd_clean_step`, `gd_tuned_step`,
`linear_mmse`, `mask_bayes`; of order and placement: `gd_positions`, `gd_positions_trained`, one step with a step size
for each position, fitted on the evaluation's or the training's contexts; null with a `reason` where one is not
defined"""
EVALUATION = (
    "`predictors`: for the model and each baseline, on a user's contexts, `loss` (half the squared error) with "
    "`loss_se` over contexts, the model's `ratio` to it on the same contexts with `ratio_se`, and the `reason` where "
    "one is not defined; `facts`: steps, step sizes, what was estimated; `data`, `sha256` of the file"
)
VOCABULARY = """the piece of text that each symbol's number stands for: `letters`, the first symbols, then `merges`, the
numbers of the two symbols that each further one joins"""
PROBES = (
    "a row for each score: `target`, `steps` of descent where it depends on them, `activation`, `position` (a row "
    "of tokens), `probe` (`trained`, and the controls `untrained`, `other_context`, `tokens`; `read_out`), `measure` "
    "(R2 or AUROC), `score` with `low, high`, how many `features`, `coordinates` and `contexts`; or the `reason` that "
    "there is none"
)
EVALUATED_CONTEXTS = (
    "a row for each query: `context`, `position` (pairs before it), its label `y`, the prediction of each predictor "
    "under its name, and its `NAME_loss`"
)
POSITION_STEPS = """for each position of the context, its step size in one step of gradient descent: `predicted` (the
best on tasks like the training's), `regressed` and `differentiated` from the model; `variance_explained` of its
predictions by such a step, and by one step size for all positions; agreement of the step sizes read with those
predicted: `..._rms`, and `..._r2`, null with a `reason` where positions are exchangeable"""
SEPARATION = """by layer, head and score: clean and noisy means, `auroc` with its interval, `auroc_raw`,
`auroc_position`, change from the same context without noise; the model's influence; gradient descent's values; under
`detectors` what how well detectors of corruption separate pairs (`mask_bayes`, `loo_gd`), on `tasks` contexts; null,
never NaN"""
OVER_TRAINING = """a row for each snapshot: `tf_loss`; `loss, preds_diff, model_diff, model_cos` of gradient descent
(`gd_...`) and, for several linear layers, of GD++ with learned rates (`gd_plus_plus_...`); for interleaved tokens `own,
next, other, other_with_next` as in copying.json's `averaged_before_norm`, and `..._x` of its
`averaged_before_norm_x`"""
COPYING = """how strongly the first layer's output at a token depends on tokens: `own` the same one, `next` the next
one, `other` the others; `next_over_other`: the ratio; `other_with_next` and `next_over_other_with_next`: the same
with all tokens but its own as others, as in the published code; `averaged_before_norm_x`, `per_task_x`: over the
channels of x alone; `untrained`: all of this before training"""
SOLUTIONS = """which `solution` of the population loss the layer has found; `swapped_share`: how much of the layer swaps
inputs and labels; `rank` of the layer's effective step, and its eigenvalues divided by the best step size (`shares`);
population losses of the layer, of gradient descent (`best`) and of the `mixed` point where it is a minimum"""
DISTANCE = """a row for each pair of predictors, the transformer and algorithms with as many steps as it has layers;
`step`: `final`, or that of a snapshot; `row` and `column`: the two predictors; `measure`: `cosine` of
sensitivities, `difference` (mean absolute) of predictions, or `loss_ratio` (row over column); where `column` is
empty: `loss`, or `loss_replaced_N` with N replaced labels; `value` and `value_se`, empty where not defined;
`reason`: why an algorithm is not defined"""
COMPARED = """losses with standard errors, paired ratio and difference, `preds_diff`, `l2_pred_diff`, `model_diff`,
`model_cos`; in the transformer's run"""
MAPS = "a head's map in one context, and its mean size over all; for linear attention raw scores of any sign and scale"

LLC = """a row for each choice of settings and each checkpoint; `settings`: eight hexadecimal digits; `step`; `llc`,
with its 95 % t interval over chains `llc_low`, `llc_high`; `loss`: L(w*) on the fixed set; `null_loss`: that of a
predictor that knows nothing; `draw_loss`: mean loss of the draws; `saturation`: where `draw_loss` lies between
`loss` (0) and `null_loss` (1); `acceptance` of a Metropolis step; `stability`: eps (nbeta h_max + gamma); `trend`
over the draws, in standard errors; `r_hat`, `ess`; `below`: fraction of draws with a loss below L(w*); `distance`
from w*; `radius`: sqrt(d / gamma); `norm`: |w*|; `relaxation`: 2 / (eps gamma) steps; `top_eigenvalue`: h_max;
`verdict` and `reasons`; a column for each setting"""
LLC_TRACES = """the chains at a checkpoint: `excess` and `distance` [C,T] of each draw, burn-in included, `fixed_loss`
and `acceptance` [C,K] of each check; `row`, as JSON, and `parameters`, the SHA-256 of w*"""
LLC_ADVICE = """`cell` (the chosen `eps`, `nbeta`, `gamma`, or null), `reason`, `order` (whether the order of the
checkpoints' LLCs depends on the setting), `top_eigenvalues` by step"""

DEVELOPMENT = """a row for each checkpoint; `step, loss, loss_se, weight_norm`; with `--hessian`: `hessian_trace,
hessian_trace_se, hessian_top` of the loss; for diversity, `id_...` on the pool's tasks and `ood_...` on fresh ones:
`mse_noisy`, `mse_noiseless`, the same at position k `..._k`, `squared_prediction`, `delta_ridge`, `delta_dmmse`;
`icl_1_d`, `icl_d_k`, `icl_1_k` on noisy labels: `..._text` = l_a - l_b, `..._figure` = l_b - l_a; `gain_G_...`,
with inputs multiplied by G: `mse_noisy`, `icl_over_g_text`, `icl_over_g_figure`; for tokens, with `..._se`:
`kl_NAME` from each predictor, `nearest`, `phase`, `bigram_divergence`, `ngram_score_n`, `icl_score`,
`icl_score_minus_NAME`, `positional_ablation`, `copy_loss`, `copy_accuracy`; for heads of decoders of tokens:
`previous_token`, `start_attention`, `prefix_matching`, `match_mass`, `k_composition_h` with head h of the layer
below, `ablation`; `previous_token_head` by its score, `ablation_previous_token_head`, `ablation_other_heads`;
`null_NAME`: what a model without the property has; structure: `embedding_share_i`, `embedding_smallest_share`,
`position_share_i`, `position_top_share`, `embedding_in_positions_i`, `unembedding_norm`, `unembedding_bias`,
`unembedding_participation`, `unembedding_top_share`; for each layer norm: `..._gamma_mean`, `..._gamma_small`,
`..._beta_small`; for each head `layer_L_head_H_...`, and their means `attention_...`: `entropy`, `variability`,
`self`, `previous`, and for tokens x, y, x, y `inputs`, `entropy_x`, `entropy_y`; columns that the run or its model
does not have are left out"""
INTERVENTIONS = """a row for each head (`table` head) and row of a layer's stream (position), in each `direction`: what
differs in the pairs (`corruption`), `metric`, `layer`, `head`, `position`; the restored `share` of the metric's
gap with the ends of its 95 % interval `low`, `high`, over `n` pairs, null with a `reason` where the gap lies within its
error; `estimate`, the share to first order (attribution patching)"""
ABLATIONS = """a row for each head, MLP and block (`table`) and `ablation` (zero, mean, resample): `metric`, `layer`,
`head`; mean `change` of the metric over `n` clean contexts (for the metric prediction, the mean squared change), with
the ends of its 95 % interval `low`, `high`; `estimate`, the change to first order (not for squared changes)"""
DYNAMICS = """a row for each checkpoint of the run (`trajectory`) and of one random walk of its steps (`random walk`):
`series`, `step`, scores `pc1, pc2, pc3`, the same smoothed (`..._smooth`), and the smoothed curve's `curvature_...` in
each plane"""
DYNAMICS_FACTS = """fractions of variance `explained`, and the fractions for cosines, 6 / (pi k)^2 (`cosines`); `forms`,
strongest first: `checkpoint`, `step`, `point` [3], `strength` (nats), `spread`, `planes`, `p`; `p_forms`, null below
fifty checkpoints; `null`: the same quantities for `walks` random walks"""
STAGES = """a row for each stage: `series` (`LLC`, or `loss alone`: nbeta (L_null - L(w*)) in place of the LLC),
`data_seed`, `init_seed`, `start`, `end` (steps), `type` (A: the LLC rises, B: it falls, `undecided`), `delta_loss`,
`delta_llc`, each with `..._se`"""
DEVELOP_TABLE = (
    "for each checkpoint: the columns of `developmental_metrics.csv`, the LLC of each setting (`llc_NAME`, "
    "`loss_NAME`, `verdict_NAME`, `reasons_NAME`), and components of the essential dynamics"
)
DEVELOP_STAGES = """a row for each stage and setting; `start`, `end`: its checkpoints; `type`; `claimed`;
`delta_loss`, `delta_llc` and `delta_llc_se`: the changes; `delta_predicted`, `delta_of_loss`, `delta_annealed`: the
change of the LLC under each null hypothesis; `p_zero`, `p_predicted`, `p_of_loss`: p-values of the measured
change's difference from 0 and from these; `p_annealed`: p-value of the branches' change; `sampled`: whether the
chains at both ends are usable for a test; `differs`: whether the change differs from all nulls"""
DEVELOP = """`settings`; `lines`: the linear fit of each LLC on the loss; `usable`: how many checkpoints are;
`sampled_at_all`: checkpoints that are sampled at all unsaturated settings; `estimates` by setting: `steps`,
`losses`, `llc` of each chain, `predicted`, `predicted_error`, `sampled`; `milestones`, as in `stages.json`;
`curve`: the fitted one; `change_points`; `stages`; `largest_changes`, as rows of `stages.csv`; `dynamics`, as in
`essential_dynamics.json`"""
STAGES_FACTS = """`setting`, `settings` and `rule`: the flags; `checkpoints`: what was fitted; `curve`: `length`,
`jitter`, `evidence`, `has_shape` and, over steps, `llc` and `slope` with `..._se`; `milestones`: `step`, from
`since` to `until`, `slope`, `sides` on which the LLC changes significantly, `support`, 90 % interval `low` to
`high`, `usable`, `loss_has_one`, `seeds`; `change_points`: `points`, each a `step` with the slopes `before` and
`after` and its `gain` in BIC, and `bic` of 1, 2, ... segments; `loss_alone`: the milestones of the loss; `seeds`:
the other runs"""
LLC_CURVE = "a row for each checkpoint, `nbeta` and `gamma`, columns as in llc.csv, and `on_plateau`"
CURVATURE = """a row for each checkpoint, `nbeta` and `gamma`: the largest eigenvalues `h_1` to `h_5` of the Hessian,
`h_min`, its `trace` with `trace_error`, the `slope`, and the quadratic prediction `predicted` with its four parts"""
ESTIMATED, CALIBRATED = "`analysis.llc`", "`analysis.llc_calibrate`"
CAPTURED, COMPARING = "`--save_attention`", "`analysis.compare_sine`"
MEASURED = "regression on corrupted or ordered contexts, if it takes about a second; sweeps; `analysis.comparators`"
FILES = (
    File(
        layout.MANIFEST,
        EVERY,
        "a header, then a `file` line for each file that a command writes here, added before it is first written",
    ),
    File(
        layout.CONFIG,
        EVERY,
        "the resolved config: `schema_version`, `family`, its fields, and the plugins, arrays and runs it builds on",
    ),
    File(layout.META, EVERY, META),
    File(layout.METRICS, EVERY, METRICS),
    File(layout.SUMMARY, EVERY, SUMMARY),
    File(layout.PARAMS, EVERY, "the parameters, `module/name`"),
    File(layout.BEST_PARAMS, "`--keep_best`", "the parameters at the record with the lowest `eval_loss`"),
    File(layout.INITIAL_PARAMS, "`--init_from`", "the parameters that the training started from"),
    File(layout.PARAMS_PICKLE, EVERY, "the same as nested dictionaries of NumPy arrays, for other programs"),
    File(
        f"{layout.CHECKPOINTS}/",
        EVERY,
        "what resuming needs, and the snapshots so far; for a finished run, its last state",
    ),
    File(layout.ANALYSIS_BATCH, EVERY, BATCH),
    File("figs/loss.png", EVERY, "losses over training, a panel for each unit; not in sweeps"),
    File(layout.SNAPSHOTS, "`--config.snapshots=true`", "`step` and every parameter, with a leading axis of records"),
    File(layout.LOSSES, "`analysis.losses`", "`step, loss, loss_se` on the evaluation batch, a row for each snapshot"),
    File(layout.PREDICTIONS, "regression, sine, diversity, tokens, functions", PREDICTIONS),
    File(
        layout.ORDERING_INDEX,
        REGRESSION,
        "evaluation batch, int32 [B,N]: entry i is the index, as drawn, of the pair at position i",
    ),
    File(layout.NOISE_MASK, REGRESSION, "evaluation batch, bool [B,N]: whether the pair at position i is corrupted"),
    File("analysis/ordering_idx.npy", REGRESSION, "a copy"),
    File("analysis/noise_mask.npy", REGRESSION, "a copy"),
    File("analysis/train_ordering_idx.npy", REGRESSION, "the same array for the first training batch"),
    File("analysis/train_noise_mask.npy", REGRESSION, "the same array for the first training batch"),
    File(layout.ANALYSIS_METADATA, REGRESSION, CONTEXTS),
    File(layout.ALIGNMENT, "regression; `analysis.alignment`", ALIGNMENT),
    File(
        layout.ALIGNMENT_CURVE, REGRESSION, "over training: `step, preds_diff, model_diff, model_cos, tf_loss, gd_loss`"
    ),
    File(layout.OOD, "regression; `analysis.ood_eval`", OOD),
    File(layout.SHIFTS, "`analysis.shifts`", SHIFTS),
    File(
        layout.WEIGHTS,
        REGRESSION,
        "`kq` = W_K^T W_Q, `pv` = P W_V [L,heads,W,W]; `rescaled_...`: both rescaled; `construction_...`: those of the "
        "construction that does gradient descent",
    ),
    File(layout.COPYING, "`twolayer`; `analysis.copying`", COPYING),
    File(layout.SOLUTIONS, "one linear layer on clean contexts; `analysis.solutions`", SOLUTIONS),
    File(
        layout.IMPLIED_PRIOR,
        "Markov chains; `analysis.implied_prior`",
        "the `alpha` that predictions imply, and KLs; losses on chains of other priors and on longer contexts",
    ),
    File(
        layout.LLC_SATURATION_FIGURE,
        "`analysis.llc_saturation`",
        "the LLC against the loss at the published and at the default setting",
    ),
    File(layout.COMPARATORS, MEASURED, ON_CORRUPTED),
    File(layout.EVALUATION, "`analysis.evaluate`", EVALUATION),
    File(layout.EVALUATED_CONTEXTS, "`analysis.evaluate`", EVALUATED_CONTEXTS),
    File(layout.VOCABULARY, "runs on text", VOCABULARY),
    File(layout.PROBES, "`analysis.probes`", PROBES),
    File(
        layout.PROBES_FACTS,
        "`analysis.probes`",
        "folds, penalties, `step_size` of gradient descent, rows; `best`: where each target's score is the largest",
    ),
    File(
        layout.PROBES_FIGURE,
        "`analysis.probes`",
        "the scores with their controls, a panel for each target, over activations or over rows of tokens",
    ),
    File(layout.INTERVENTIONS, "`analysis.interventions`", INTERVENTIONS),
    File(layout.ABLATIONS, "`analysis.interventions`", ABLATIONS),
    File(layout.INTERVENTIONS_FIGURE, "`analysis.interventions`", "both tables as heat maps"),
    File(layout.POSITION_STEPS, "`analysis.position_steps`", POSITION_STEPS),
    File(layout.ESSENTIAL_DYNAMICS, "`analysis.essential_dynamics`", DYNAMICS),
    File(layout.ESSENTIAL_DYNAMICS_FACTS, "`analysis.essential_dynamics`", DYNAMICS_FACTS),
    File(
        layout.ESSENTIAL_DYNAMICS_FIGURE,
        "`analysis.essential_dynamics`",
        "the planes of the run and of a random walk, scores, shares of variance, strengths of forms",
    ),
    File(layout.STAGES, "`analysis.stages`", STAGES),
    File(layout.STAGES_FACTS, "`analysis.stages`", STAGES_FACTS),
    File(
        layout.STAGES_FIGURE,
        "`analysis.stages`",
        "the LLC with its fit, milestones and stages, change points and the loss alone; the slope; the loss",
    ),
    File(layout.DEVELOP_TABLE, "`analysis.develop`", DEVELOP_TABLE),
    File(layout.DEVELOP_STAGES, "`analysis.develop`", DEVELOP_STAGES),
    File(layout.DEVELOP, "`analysis.develop`", DEVELOP),
    File(
        layout.DEVELOP_FIGURE,
        "`analysis.develop`",
        "loss, LLC, behaviour and structure over log time, with stages; the path and a random walk's",
    ),
    File(layout.DEVELOPMENTAL_METRICS, "`analysis.developmental_metrics`", DEVELOPMENT),
    File(
        layout.DEVELOPMENTAL_METRICS_FIGURE,
        "`analysis.developmental_metrics`",
        "the same over training, a panel for each kind of metric that the run has",
    ),
    File(layout.LLC, ESTIMATED, LLC),
    File("llc/{SETTINGS}_step_{STEP}.npz", ESTIMATED, LLC_TRACES),
    File(layout.LLC_FIGURE, ESTIMATED, "the estimates for the most recent settings, with their diagnostics"),
    File(layout.LLC_CURVE, "`analysis.llc` with `--nbetas` or `--gammas`", LLC_CURVE),
    File(layout.LLC_CURVE_FIGURE, "`analysis.llc` with `--nbetas` or `--gammas`", "the last checkpoint's curve, drawn"),
    File(layout.CURVATURE, "`analysis.curvature`", CURVATURE),
    File(layout.LLC_CALIBRATION, CALIBRATED, "a row for each cell of the grid and checkpoint, columns as in llc.csv"),
    File(layout.LLC_ADVICE, CALIBRATED, LLC_ADVICE),
    File(layout.LLC_CALIBRATION_FIGURE, CALIBRATED, "heat maps of LLC, saturation, trend and acceptance"),
    File(layout.ATTENTION_STATS, "sweeps of regression; `analysis.attention_stats`", SEPARATION),
    File(layout.ATTENTION_STATS_FIGURE, "`analysis.attention_stats`", "the same, drawn"),
    File(layout.OVER_TRAINING, "`analysis.over_training`", OVER_TRAINING),
    File(layout.ALGORITHM_DISTANCE, "`analysis.algorithm_distance`", DISTANCE),
    File("figs/algorithm_distance.png", "`analysis.algorithm_distance`", "the matrix, a heat map for each measure"),
    File(
        "figs/algorithms_over_training.png",
        "`analysis.algorithm_distance --snapshots`",
        "its distances to the algorithms over training: cosines, prediction differences, ratios of losses",
    ),
    File("attn/layer{L}.npz", CAPTURED, "attention maps of a layer: `data` [B',heads,rows,cols]"),
    File("attn/layer{L}_head{H}.npy", CAPTURED, "the mean map of a head [rows,cols]"),
    File(layout.ATTENTION_SUMMARY, CAPTURED, "statistics of each head"),
    File("figs/attention_layer{L}_head{H}.png", f"{CAPTURED}; `plots.attention_quick`", MAPS),
    File("figs/alignment.png", REGRESSION, "alignment with gradient descent over training; not in sweeps"),
    File("figs/weights.png", REGRESSION, "weight products and the construction's, scales divided out; not in sweeps"),
    File(
        layout.LAYERWISE,
        "layerwise; `analysis.layerwise`",
        "losses after every layer, and of gradient descent after as many steps",
    ),
    File("figs/layerwise.png", "layerwise", "these losses, drawn; not in sweeps"),
    File(
        layout.SINE_FUNCTIONS,
        "sine",
        "`x, target, before, after` at 100 inputs, of one sine and one context for all runs",
    ),
    File(layout.SINE_FUNCTIONS_FACTS, "sine", "this sine, and the losses of both functions"),
    File("figs/sine_functions.png", "sine", "these functions, drawn; not in sweeps"),
    File(layout.SINE_COMPARISON, COMPARING, COMPARED),
    File(layout.SINE_COMPARISON_FUNCTIONS, COMPARING, "the functions of the transformer and its control"),
    File("figs/sine_comparison.png", COMPARING, "these functions, drawn"),
    File(
        layout.FUNCTIONS,
        "functions",
        "`set, position, predictor, loss, loss_se, median, prompts, scale, excess, excess_se` on the test prompts: "
        "position k has seen k pairs; excess: the model's loss less the predictor's",
    ),
    File(
        layout.FUNCTION_SHIFTS,
        "`analysis.function_shifts`",
        "`function, shift, position, predictor, loss, loss_se, prompts`; of the model (`tf`) also `best_baseline`, its "
        "`excess` over that, `excess_se`, and whether the shift `breaks` it",
    ),
    File(
        layout.NEAREST_ALGORITHM,
        "`analysis.nearest_algorithm`",
        "`step, position, prompts, nearest, distance`, `runner_up, runner_up_distance`, `between_seeds`, each distance "
        "with `_se`; `named`: the nearest algorithm where the runner-up is farther by more than `between_seeds`, else "
        "empty; ` = ` joins algorithms that predict the same",
    ),
    File(
        layout.NEAREST_ALGORITHM_FIGURE, "`analysis.nearest_algorithm`", "the algorithm named at each step and position"
    ),
    File(layout.LATENT_BATCH, "diversity", "sequences of fresh tasks; those of the pool are in `analysis_batch.npz`"),
)


def entry(name: str) -> File | None:
    """The table's line of a file of a run directory; None for a name that it lacks."""
    return next((file for file in FILES if _pattern(file.name).fullmatch(name)), None)


def _pattern(name: str) -> re.Pattern[str]:
    number = re.sub(r"\\\{[LH]\\\}", r"\\d+", re.escape(name))
    return re.compile(number + ".+" if name.endswith("/") else number)
