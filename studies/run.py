"""Carries out a study: trains what is missing, measures its claims, writes tables, figures and page.

python -m studies.run reproduction --profile quick
python -m studies.run my/conjecture.py
python -m studies.run reproduction --claims one_layer_loss --seeds 21,22,23

The last one replicates a claim with seeds of one's own (`studies.replication`). A file, or a folder, is a plugin that
states a conjecture or has a STUDY (docs/extending.md).

If it is killed, the same command resumes it. Claims whose runs have finished are measured first, the others after their
training; each is written once it is measured, and claims that are not measured again keep their values.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icl_lab.lab import cli
from icl_lab.lab.environment import check_devices
from icl_lab.lab.progress import say
from icl_lab.src.words import did_you_mean
from icl_lab.store import rundir
from icl_lab.store.outputs import out_folder
from icl_lab.studies import replication
from icl_lab.studies.study import PROFILES, RUNS_DIRS, all_studies, load, of_profile
from icl_lab.sweeps.collect import check_out
from icl_lab.sweeps.command import carry_out, planned
from icl_lab.sweeps.execution import Execution, add_execution_flags, execution
from icl_lab.sweeps.plan import Point, runs_of
from icl_lab.sweeps.status import statuses

REPORT, CONJECTURES = "report", "conjectures"  # where results go

if TYPE_CHECKING:
    from icl_lab.studies.claim import Claim
    from icl_lab.studies.figure import AnyFigure
    from icl_lab.studies.study import Study


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("studies.run", "Trains what a study needs, measures its claims and writes its page.")
    built.add_argument("study", help=f"{', '.join(RUNS_DIRS)}, or the file of a conjecture or a study: FILE.py")
    built.add_argument("--profile", choices=PROFILES, default="quick", help="how much of the study to run")
    cli.add_list(built, "--claims", str, (), "only these claims, whatever their study and profile")
    built.add_argument(
        "--controls", action="store_true", help="with --claims: measure only their controls, and measure them anew"
    )
    replication.add_flags(built)
    text = f"folder of the results; default: {REPORT}, or {CONJECTURES} for a FILE.py"
    built.add_argument("--report", type=out_folder, help=text)
    add_execution_flags(built, None, None)
    built.needs("jinja2")
    return built


def main(argv: list[str]) -> int:
    """The command line; the exit status."""
    built = parser()
    flags = built.parse(argv)
    replication.check_flags(flags, built.get_default("profile"))
    if flags.study not in RUNS_DIRS:
        return _of_file(Path(flags.study), flags)
    flags.report = flags.report or out_folder(REPORT)
    check_devices()
    if not flags.claims:
        if flags.controls:
            raise cli.UsageError("--controls needs --claims")
        study = load(flags.study)
        _check(study, of_profile(study.claims, flags.profile), flags)
        return _study(study, flags)
    known = {claim.name: (study, claim) for study in all_studies() for claim in study.claims}
    chosen = _named(flags.claims, known)
    if flags.seeds:
        return replication.replicate(replication.asked(chosen, flags), flags, _execution)
    for study in dict.fromkeys(study for study, _ in chosen):
        _check(study, [claim for owner, claim in chosen if owner is study], flags)
    if flags.controls:
        return _controls(chosen, flags)
    status = 0
    for study in dict.fromkeys(study for study, _ in chosen):
        status = max(status, _claims(study, [claim for owner, claim in chosen if owner is study], flags))
        if status > 128:  # a signal
            break
    return status


def _of_file(file: Path, flags: argparse.Namespace) -> int:
    """The study, or the conjecture, that a plugin states."""
    if file.suffix != ".py" and not file.is_dir():
        near = did_you_mean(str(file), RUNS_DIRS)
        raise cli.UsageError(f"there is no study {str(file)!r}{near}; choose {', '.join(RUNS_DIRS)} or name a file.py")
    from icl_lab.studies import own_study

    own = own_study.load(file)
    return _conjecture(file, flags) if own is None else _own(own, flags)


def _own(study: Study, flags: argparse.Namespace) -> int:
    """A user's own study, or some of its claims, with results in a folder of its name."""
    if flags.controls or flags.seeds:
        raise cli.UsageError("--controls and --seeds are only for the built-in studies; leave them out for your own")
    check_devices()
    flags.report = (flags.report or out_folder(CONJECTURES)) / study.name
    chosen = _named(flags.claims, {claim.name: (study, claim) for claim in study.claims})
    claims = [claim for _, claim in chosen] or of_profile(study.claims, flags.profile)
    _check(study, claims, flags)
    return _claims(study, claims, flags) if chosen else _study(study, flags)


def _conjecture(file: Path, flags: argparse.Namespace) -> int:
    """The conjecture that a plugin states."""
    if flags.claims or flags.controls:
        raise cli.UsageError("all predictions of a conjecture are measured; leave --claims and --controls out")
    check_devices()
    from icl_lab.studies import conjecture, conjecture_page

    if flags.profile not in conjecture.PROFILES:
        raise cli.UsageError(f"a conjecture has no profile {flags.profile}; choose {' or '.join(conjecture.PROFILES)}")
    study, out = conjecture.load(file, flags.profile), flags.report or out_folder(CONJECTURES)
    conjecture_page.check(study, out)
    how, points = _execution(study, flags), planned(study.grids(flags.profile), flags.quiet)
    how = how._replace(append=False, replace_table=True)  # rows of an earlier version of the file cannot be read
    status = carry_out(points, how)
    if not how.dry_run and status <= 128:
        conjecture_page.report(study, flags.profile, how.folder, out, how.cluster)
    return status


def _named(names: Iterable[str], known: Mapping[str, tuple[Study, Claim]]) -> list[tuple[Study, Claim]]:
    for name in names:
        if name not in known:
            raise cli.UsageError(f"unknown claim {name!r}{did_you_mean(name, known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _check(study: Study, claims: Sequence[Claim], flags: argparse.Namespace) -> None:
    """`ConfigError` if something is wrong with the study's claims, or these have been read on other seeds."""
    from icl_lab.studies import checks, ledger, page

    checks.check(study)
    page.check(study)
    checks.check_readings(study, claims, ledger.seeds_read(flags.report))


def _study(study: Study, flags: argparse.Namespace) -> int:
    """A profile of a study."""
    from icl_lab.studies import page
    from icl_lab.studies.drawing import draw

    if flags.profile not in study.profiles:
        raise cli.UsageError(f"{study.name} has no profile {flags.profile}; choose {' or '.join(study.profiles)}")
    how, points = _execution(study, flags), planned(study.grids(flags.profile), flags.quiet)
    page.check_outputs(study, flags.profile, flags.report, study.figures_of(flags.profile))
    status = _train_and_measure(study, of_profile(study.claims, flags.profile), points, how, flags.report)
    if how.dry_run or status > 128:
        return status
    draw(study, study.figures_of(flags.profile), how.folder, flags.report, how.cluster)
    if not study.conditions or _compare(study, points, how, flags):
        _write_pages(study, flags.profile, flags.report)
    return status


def _claims(study: Study, claims: Sequence[Claim], flags: argparse.Namespace) -> int:
    """Some of a study's claims, and those of their figures whose runs are all there."""
    from icl_lab.studies import page
    from icl_lab.studies.drawing import draw

    figures = figures_with(study, claims)
    how, points = _execution(study, flags), planned(study.grids_of(claims), flags.quiet)
    page.check_outputs(study, study.profiles[-1], flags.report, figures)
    status = _train_and_measure(study, claims, points, how, flags.report)
    if not how.dry_run and status <= 128:
        draw(study, figures, how.folder, flags.report, how.cluster)
        _write_pages(study, study.profiles[-1], flags.report)
    return status


def figures_with(study: Study, claims: Sequence[Claim]) -> list[AnyFigure]:
    """The figures of these claims' runs, but for those of further runs that are analysed with other claims."""
    run_names = {name for claim in claims for name in claim.trained}
    with_others = study.analyses.keys() - run_names
    return [
        figure
        for figure in study.figures
        if run_names.intersection(figure.run_names) and not with_others.intersection(figure.run_names)
    ]


def _controls(chosen: Sequence[tuple[Study, Claim]], flags: argparse.Namespace) -> int:
    """The controls of claims that are measured: their runs are trained, and they are measured alike."""
    from icl_lab.studies import ledger, page
    from icl_lab.studies.claim import Without
    from icl_lab.studies.measuring import can_measure, measured, with_control
    from icl_lab.studies.verdict import judge

    known = ledger.known(flags.report)
    for _, claim in chosen:
        if claim.name not in known:
            raise cli.UsageError(f"{claim.name} is not measured; leave --controls out")
        if not claim.control_names:
            reason = claim.control.reason if isinstance(claim.control, Without) else "it is measured without runs"
            raise cli.UsageError(f"{claim.name} has no control: {reason}")
    for study in dict.fromkeys(study for study, _ in chosen):
        claims = [claim for owner, claim in chosen if owner is study]
        names = dict.fromkeys(name for claim in claims for name in claim.control_names)
        how = _execution(study, flags)
        page.check_outputs(study, study.profiles[-1], flags.report)
        status = carry_out(planned([study.runs_of(name).grid for name in names], flags.quiet), how)
        if how.dry_run or status > 128:
            return status
        ready = [claim for claim in claims if can_measure(study, claim, how.folder, controls=True)]
        for claim, control in measured(study, ready, how.folder, how.cluster, controls=True):
            if control:
                measurement = with_control(known[claim.name], control)
                ledger.write(flags.report, {claim.name: measurement})
                print(f"control of {claim.name}: {judge(claim, measurement).verdict}", flush=True)
        if left := len(claims) - len(ready):
            print(f"{left} of {len(claims)} controls are not measured: their runs have not ended")
        _write_pages(study, study.profiles[-1], flags.report)
    return 0


def _write_pages(study: Study, profile: str, out: Path) -> None:
    from icl_lab.studies import index, ledger, main_results, page

    ledger.write(out, {}, study.alone)
    main_results.draw(study, out)
    page.write(study, profile, out)
    if not study.file:
        index.write(out)


def _execution(study: Study, flags: argparse.Namespace) -> Execution:
    """How the study is trained. Its table keeps the cells of all claims, whichever are chosen."""
    if flags.replace_table:
        raise cli.UsageError("the table of a study keeps the rows of all its claims; leave --replace_table out")
    folder = flags.runs_dir or study.runs_dir
    place = {"runs_dir": folder, "out": flags.out or folder.with_name(f"{folder.name}.csv")}
    how = execution(argparse.Namespace(**{**vars(flags), **place}))._replace(append=True)
    check_out(how.out, how.folder)  # before minutes of measuring, not after
    return how


def _train_and_measure(
    study: Study, claims: Sequence[Claim], points: Sequence[Point], how: Execution, out: Path
) -> int:
    at_once = not (how.dry_run or how.overwrite)
    cell_names = {cell.name for cell in runs_of(points)}
    left = _analyse_and_measure(study, claims, cell_names, how, out) if at_once else claims
    status = carry_out(points, how)
    if not how.dry_run and status <= 128:
        left = _analyse_and_measure(study, left, cell_names, how, out)
        if left:
            print(f"{len(left)} of {len(claims)} claims are not measured: their runs have not ended")
    return status


def _analyse_and_measure(
    study: Study, claims: Sequence[Claim], cell_names: Collection[str], how: Execution, out: Path
) -> list[Claim]:
    """Analyses these cells that are done, and measures the claims whose runs have ended; gives the others."""
    from icl_lab.studies.measuring import analysed

    runs = study.to_analyse(cell_names, how.folder)
    for number, name in enumerate(analysed(study, runs, how.folder, how.cluster), 1):
        say(f"{number} of {len(runs)} runs analysed: {name}")
    return _measure(study, claims, how, out)


def _measure(study: Study, claims: Sequence[Claim], how: Execution, out: Path) -> list[Claim]:
    """Measures the claims whose runs have ended, writing each into the ledger, and gives the others."""
    from icl_lab.studies import ledger
    from icl_lab.studies.measuring import can_measure, measured
    from icl_lab.studies.verdict import judge

    ready = [claim for claim in claims if can_measure(study, claim, how.folder)]
    left = [claim for claim in claims if claim not in ready]
    for number, (claim, measurement) in enumerate(measured(study, ready, how.folder, how.cluster), 1):
        if measurement is None:  # its runs were taken away
            left.append(claim)
            continue
        say(f"{number} of {len(ready)}, {claim.name}: {judge(claim, measurement).verdict}")
        ledger.write(out, {claim.name: measurement}, study.alone)
    return left


def _compare(study: Study, points: Sequence[Point], how: Execution, flags: argparse.Namespace) -> bool:
    """Writes the tables and figures of a study's conditions once all of its cells have ended; whether they have."""
    assert study.conditions is not None
    ended = sum(status in rundir.FINISHED for status in statuses(runs_of(points), how.folder).values())
    if ended < len(runs_of(points)):
        print(f"{ended} of {len(runs_of(points))} cells have ended; tables, figures and page are written once all have")
        return False
    folder = flags.report / study.results(flags.profile)
    study.conditions.write(how.out, how.folder, folder, study.conditions.seeds[flags.profile])
    return True


if __name__ == "__main__":
    cli.launch(main)
