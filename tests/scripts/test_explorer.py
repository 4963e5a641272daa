"""The explorer's pages compute in JavaScript what the library computes in Python, refuse bad files and links with a
sentence, execute nothing that is dropped, and follow mouse, touch and keyboard. All runs in headless Chromium.
"""

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import icl_lab
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.baselines.gd_plus_plus import Rates, expected_losses
from icl_lab.baselines.gradient_descent import gd, gd_plus_plus
from icl_lab.baselines.linear_mmse import ridge
from icl_lab.families.task import model_of
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.scripts import export_explorer
from icl_lab.scripts.site import check, explorer_data
from icl_lab.src.batch import Batch
from icl_lab.src.data import positional_encoding
from icl_lab.src.one_step import one_step_size
from icl_lab.src.solutions import DESCENT, MIXED, PLATEAU, SWAPPED
from tests.doors import Ran, Refused, ran, refused
from tests.processes import ROOT

__all__ = ["ran", "refused"]

STATIC = ROOT / "docs" / "static" / "explorer"
LIMIT = 300_000  # bytes of the data of all pages, compressed
RATES = {"gd": [1.0] * export_explorer.DEPTH, "gdpp": [1.8] * export_explorer.DEPTH, "gamma": [0.2] * 12}
SHAPES = {
    "one layer": {"dim": 2},
    "one input": {"dim": 1, "num_pairs": 3},
    "ten inputs": {"dim": 10},
    "two heads": {"dim": 2, "num_heads": 2},
    "shared weights": {"dim": 2, "num_layers": 3, "recurrent": True, "damping": 0.7},
    "own weights": {"dim": 3, "num_layers": 2, "num_heads": 2},
    "merged": {"dim": 2, "merged": True},
}


# --- runs and pages ---


def untrained(model: str, scale: float, **fields: Any) -> LoadedRun:
    """A run of drawn weights, large enough that its predictions are not near 0."""
    config = preset(model, "default", fields.pop("num_layers", None), fields.pop("recurrent", False))
    set_values(config, fields)
    resolved = resolve(config)
    of = model_of(resolved)
    params = jax.tree.map(lambda each: scale * np.asarray(each), of.init(jax.random.key(1)))
    return LoadedRun(Path("nowhere"), resolved, of, params, None)


def contexts(count: int, pairs: int, dim: int) -> Batch:
    rng = np.random.default_rng(0)
    x, w = rng.uniform(-0.5, 0.5, (count, pairs, dim)), rng.standard_normal((count, dim))
    query = rng.uniform(-0.5, 0.5, (count, dim))
    y = np.einsum("bnd,bd->bn", x, w) + 0.1 * rng.standard_normal((count, pairs))
    return Batch(*(jnp.asarray(part, jnp.float32) for part in (x, y, query, np.einsum("bd,bd->b", query, w), w)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, check.BROWSERS)), None)
    if found is None or find_spec("playwright") is None:
        pytest.skip("Chromium and playwright are not here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of both pages, without what Sphinx puts around them."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for name in ("explorer", "orders"):
        raw = re.search(r"```\{raw\} html\n(.*?)```", (ROOT / "docs" / f"{name}.md").read_text(), re.S)
        assert raw
        body = raw[1].replace("../_static/explorer", STATIC.as_uri())
        page = folder / f"{name}.html"
        head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>'
        page.write_text(f'<!doctype html><html lang="en">{head}<body>{body}')
        made[name] = page.as_uri()
    return made


@pytest.fixture(scope="module")
def tab(browser: Any, pages: dict[str, str]) -> Iterator[Any]:
    """A page with all functions, for what computes."""
    opened = browser.new_page()
    opened.goto(pages["explorer"])
    opened.add_script_tag(path=str(STATIC / "twolayer.js"))
    yield opened
    opened.close()


class Shown:
    """A page in a tab of its own, with what went wrong in it."""

    def __init__(self, browser: Any, address: str, **more: Any):
        self.tab, self.said = browser.new_page(**more), []
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("console", lambda message: self.said.append(message.text) if message.type == "error" else None)
        self.tab.goto(address)
        self.settle()

    def settle(self) -> None:
        """Waits until what was asked for is drawn."""
        self.tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def ask(self, script: str, *given: Any) -> Any:
        return self.tab.evaluate(script, *given)

    @property
    def error(self) -> str:
        return str(self.tab.text_content(".error"))

    @property
    def finding(self) -> str:
        return str(self.tab.text_content(".finding"))


@pytest.fixture
def show(browser: Any, pages: dict[str, str]) -> Iterator[Any]:
    """Opens a page at a link; at the end nothing may have gone wrong on it."""
    opened: list[Shown] = []

    def at(page: str, link: str = "", **more: Any) -> Shown:
        opened.append(Shown(browser, pages[page] + link, **more))
        return opened[-1]

    yield at
    for each in opened:
        assert each.said == []
        each.tab.close()


# --- the same numbers ---

LAYERS = """([run, x, y, query, depth]) => {
  const c = lab.moments(Float64Array.from(x), Float64Array.from(y), run.dim);
  const made = lab.asRun(run), { path } = lab.stack(made, made.weights[0], c, depth, run.damping);
  return path[depth].reduce((sum, each, k) => sum + each * query[k], 0);
}"""


@pytest.mark.parametrize("shape", SHAPES)
def test_layers_predict_in_javascript_what_they_predict_in_python(
    tab: Any, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_explorer, "rates", lambda data: RATES)
    loaded = untrained("lsa1", 40.0 if shape == "one input" else 20.0, **SHAPES[shape])
    exported = export_explorer.export(loaded, "drawn")
    batch = contexts(4, loaded.config.data.num_pairs, loaded.config.data.dim)
    expected = np.asarray(loaded.predict(batch), np.float64)
    assert np.abs(expected).max() > 0.01  # else any numbers would be near
    for place, wanted in enumerate(expected):
        given = [exported, *(np.ravel(part[place]).tolist() for part in (batch.x, batch.y, batch.x_query))]
        found = tab.evaluate(LAYERS, [*given, loaded.config.model.num_layers])
        assert abs(found - wanted) < 1e-5 * max(1, abs(wanted))


ALGORITHMS = """([x, y, query, dim, c, gamma, steps, penalty]) => {
  const moments = lab.moments(Float64Array.from(x), Float64Array.from(y), dim);
  const { s, b } = lab.normalEquations(moments, dim), at = w => w.reduce((sum, each, k) => sum + each * query[k], 0);
  return [lab.descent(s, b, dim, c, steps)[steps], lab.plusPlus(s, b, dim, c, gamma, steps)[steps],
    lab.ridge(s, b, dim, penalty)].map(at);
}"""


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("pairs", "dim"), [(10, 2), (3, 1), (10, 10), (4, 10), (1, 2)])
@pytest.mark.parametrize(("steps", "penalty"), [(1, 0.0), (5, 0.3)])
def test_algorithms_are_those_of_the_baselines(tab: Any, pairs: int, dim: int, steps: int, penalty: float) -> None:
    """Also where pairs are fewer than dimensions, and least squares takes the least norm."""
    batch = jax.tree.map(lambda part: jnp.asarray(part, jnp.float64), contexts(3, pairs, dim))
    wanted = [gd(batch, 0.7, steps), gd_plus_plus(batch, 0.7, 0.15, steps), ridge(batch, penalty)]
    for place in range(3):
        given = [np.ravel(part[place]).tolist() for part in (batch.x, batch.y, batch.x_query)]
        found = tab.evaluate(ALGORITHMS, [*given, dim, 0.7, 0.15, steps, penalty])
        np.testing.assert_allclose(found, [float(each[place]) for each in wanted], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("fields", [{}, {"input_distribution": "gaussian"}, {"noise_std": 0.5, "input_range": 2.0}])
def test_the_best_step_is_the_closed_form(tab: Any, fields: dict[str, Any]) -> None:
    data = untrained("lsa1", 1.0, dim=3, num_pairs=7, **fields).config.data
    given = [3, 7, data.input_distribution, data.input_range, data.weight_scale, data.noise_std]
    assert tab.evaluate("given => lab.bestStep(...given)", given) == pytest.approx(one_step_size(data), rel=1e-12)


ORDERED = """([made, x, y, query, order]) =>
  lab.ordered(lab.asModel(made), Float64Array.from(x), Float64Array.from(y), query)(order)"""


@pytest.mark.parametrize(("model", "fields"), [("twolayer", {}), ("twolayer", {"num_pairs": 4}), ("lsa1", {})])
def test_a_model_predicts_the_same_in_an_order_and_is_as_sensitive(
    tab: Any, model: str, fields: dict[str, Any]
) -> None:
    """The sensitivity is JAX's gradient with respect to the query."""
    loaded = untrained(model, 2.0 if model == "twolayer" else 20.0, dim=2, **fields)
    pairs, made = loaded.config.data.num_pairs, explorer_data.as_model(loaded, "drawn")
    drawn, order = contexts(3, pairs, 2), np.random.default_rng(1).permutation(pairs)
    batch = drawn._replace(x=drawn.x[:, order], y=drawn.y[:, order])

    def summed(query: jax.Array) -> jax.Array:
        return jnp.sum(loaded.predict(batch._replace(x_query=query)))

    expected, gradients = (np.asarray(each) for each in (loaded.predict(batch), jax.grad(summed)(batch.x_query)))
    assert np.abs(gradients).max() > 0.01
    for place in range(3):
        given = [np.ravel(part[place]).tolist() for part in (drawn.x, drawn.y, drawn.x_query)]
        found = tab.evaluate(ORDERED, [made, *given, order.tolist()])
        assert abs(found["prediction"] - expected[place]) < 1e-5 * max(1, abs(expected[place]))
        np.testing.assert_allclose(found["gradient"], gradients[place], atol=1e-5 * max(1, np.abs(gradients).max()))


def test_positions_are_encoded_as_in_python(tab: Any) -> None:
    found = tab.evaluate("() => [0, 1, 20].map(row => Array.from(lab.encoding(row, 10)))")
    np.testing.assert_allclose(found, positional_encoding(21, 10)[[0, 1, 20]], atol=1e-12)


def test_mean_losses_of_a_step_are_the_closed_form(tab: Any) -> None:
    """v/2 [D - N v c D], of the best step of clean contexts, within the error of 4000 contexts."""
    script = """() => { const run = lab.asRun(EXPLORER_RUNS.find(each => each.name === "d2_seed2"));
      const settings = { pairs: 10, noise: 0, range: 1, damping: 1, frozen: false };
      return lab.algorithmLosses(run, settings, 1, 4000); }"""
    losses, c = tab.evaluate(script), 10 / 12 / (10 * (1 / 80 + 1 / 144) + 90 / 144)
    assert losses["gd"][1] == pytest.approx((2 - 2 * c * 10 / 12) / 24, rel=0.08)  # 2 % of the mean, 4 errors
    assert losses["ridge"] < 1e-12


# --- the data ---


def data_of(name: str) -> list[dict[str, Any]]:
    text = (STATIC / name).read_text()
    return list(json.loads(text[text.index("[") : text.rindex("]") + 1]))


def test_the_data_are_small_and_a_command_makes_them() -> None:
    files = [STATIC / name for name in ("runs.js", "models.js")]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < LIMIT
    assert all(file.read_text().startswith(f"// Made by python -m {explorer_data.WRITER}") for file in files)
    assert [each["name"] for each in data_of("runs.js")] == [each.name for each in explorer_data.RUNS]
    assert [each["name"] for each in data_of("models.js")] == [each.name for each in explorer_data.MODELS]


def test_the_runs_end_as_the_study_names_them() -> None:
    """Of eight seeds three are gradient descent, three mixed, two wait on the plateau; D = 1 has both arrangements."""
    last = {each["name"]: each["solutions"][-1] for each in data_of("runs.js")}
    of_seeds = [last[f"d2_seed{seed}"] for seed in range(8)]
    assert [of_seeds.count(name) for name in (DESCENT, MIXED, PLATEAU)] == [3, 3, 2]
    assert {last["d1_seed0"], last["d1_seed3"]} == {SWAPPED, DESCENT}


def test_rates_are_those_that_are_fitted_from_many_starts() -> None:
    """fit_gd_plus_plus(data, 2, shared=True, seed=0) of D = N = 10, which takes minutes, gave 1.3478 and .1758."""
    rates = next(each for each in data_of("runs.js") if each["name"] == "d10_seed0")["rates"]
    assert rates["gd"][0] == pytest.approx(8.333333 / 13.75, rel=1e-5)
    assert rates["gdpp"][1] == pytest.approx(1.3478, rel=0.03)
    assert rates["gamma"][1] == pytest.approx(0.1758, rel=0.03)


def test_an_order_moves_only_what_has_learnt_to_use_positions(tab: Any) -> None:
    models = {each["name"]: each for each in data_of("models.js")}
    script = """made => { const model = lab.asModel(made), drawn = lab.draw(3, 10, 2, "uniform", 1);
      const y = lab.labels(drawn.x, drawn.w, drawn.e, 0, 2);
      const found = lab.orders(50, 10, 7).map(lab.ordered(model, drawn.x, y, Array.from(drawn.q)))
        .map(each => each.prediction);
      const mean = found.reduce((sum, each) => sum + each / found.length, 0);
      return Math.sqrt(found.reduce((sum, each) => sum + (each - mean) ** 2 / found.length, 0)); }"""
    spread = {name: tab.evaluate(script, made) for name, made in models.items()}
    assert spread["lsa1"] < 1e-9
    assert spread["twolayer_easy"] > 1.5 * spread["twolayer_random"] > 0


@pytest.mark.usefixtures("x64")
def test_what_gd_plus_plus_leaves_is_its_expected_loss() -> None:
    """v/2 sum_d r_d^2 of clean contexts is `expected_losses`."""
    data = untrained("lsa1", 1.0, dim=3).config.data
    spectra = np.random.default_rng(0).uniform(0, 2, (5, 3))
    rates = Rates(jnp.full(4, 0.9), jnp.full(4, 0.2))
    left = export_explorer.remainder(0.9, 0.2, 4, spectra)
    wanted = expected_losses(rates, jnp.asarray(spectra), data)
    np.testing.assert_allclose(np.sum(left**2, axis=1) / 24, wanted, rtol=1e-10)


# --- the command ---


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"dim": 1, "num_pairs": 4, "batch_size": 16, "steps": 4, "eval_tasks": 16, "test_tasks": 16}
    more = {"step_size_tasks": 64, "snapshots": True, "log_records": 3, "quiet": True}
    return Path(icl_lab.train("lsa1", out=tmp_path_factory.mktemp("runs") / "tiny", **settings, **more).path)


def test_a_run_is_exported_with_its_checkpoints_and_opens(tiny: Path, tmp_path: Path, ran: Ran, show: Any) -> None:
    done = ran("scripts.export_explorer", "--run", tiny, "--out", tmp_path / "mine.json")
    assert (done.status, done.err) == (0, "")
    made = json.loads((tmp_path / "mine.json").read_text())
    assert made["steps"][-1] == 4
    assert len(made["steps"]) == len(made["weights"]) == len(made["solutions"]) > 1
    page = show("explorer")
    page.tab.set_input_files("input[type=file]", tmp_path / "mine.json")
    page.tab.wait_for_selector("button:has-text('tiny')")
    assert page.ask("lab.explorer.now().run.dim") == 1
    assert page.error == ""


REFUSED = {
    "its attention is softmax": {"attention": ("softmax",)},
    "it has biases": {"bias": True},
    "it has layer norm": {"layer_norm": True},
    "it has an MLP": {"mlp_width": 8},
    "its inputs have 33 dimensions": {"dim": 33},
    "its inputs or tasks are not isotropic": {"spectrum": "power_law"},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_shown_is_a_sentence(reason: str) -> None:
    assert reason in export_explorer.reason_against(untrained("lsa1", 1.0, **REFUSED[reason]).config)


def test_other_models_are_refused_by_the_command(refused: Refused) -> None:
    assert "missing" in refused("scripts.export_explorer", "--run", "missing")
    assert "positional encodings" in export_explorer.reason_against(untrained("lsa1_pe", 1.0).config)
    assert "tokens are interleaved" in export_explorer.reason_against(
        untrained("twolayer", 1.0, attention=("linear", "linear")).config
    )


# --- files and links ---


def good() -> dict[str, Any]:
    return {**data_of("runs.js")[0], "name": "mine"}


BAD = {
    "not JSON": ("{", "it is not JSON"),
    "a script": ("<script>window.hacked = 1</script>", "it is not JSON"),
    "null": ("null", "no export of a run"),
    "a list": ("[1, 2]", "no export of a run"),
    "another format": ('{"format": "x"}', "no export of a run"),
    "another version": ({"version": 0}, "another version of scripts.export_explorer"),
    "another width": ({"dim": 3}, "The weights are of another width: 3 inputs and a label need 32 numbers"),
    "texts as weights": ({"weights": [["1"] * 18], "steps": [1], "solutions": [""]}, "damaged"),
    "no checkpoints": ({"steps": [], "weights": [], "solutions": []}, "damaged"),
    "a checkpoint less": ({"steps": [1, 2]}, "damaged"),
    "no dimension": ({"dim": 0}, "damaged"),
    "a huge dimension": ({"dim": 1e9}, "damaged"),
    "half a pair": ({"pairs": 2.5}, "damaged"),
    "rates of fewer steps": ({"rates": {"gd": [1], "gdpp": [1], "gamma": [1]}}, "damaged"),
    "no rates": ({"rates": None}, "damaged"),
    "other inputs": ({"inputs": "cauchy"}, "damaged"),
    "a name that is none": ({"name": {"toString": "x"}}, "damaged"),
    "solutions that are none": ({"solutions": [1] * 99}, "damaged"),
    "no damping": ({"damping": None}, "damaged"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_a_sentence(tab: Any, kind: str) -> None:
    given, said = BAD[kind]
    text = given if isinstance(given, str) else json.dumps(good() | given)
    found = tab.evaluate("text => lab.readRun(text).error || ''", text)
    assert said in found
    assert found.endswith(".")


DROP = """text => { const data = new DataTransfer(); data.items.add(new File([text], "run.json"));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })); }"""


def test_nothing_in_a_dropped_file_is_executed(show: Any) -> None:
    page, name = show("explorer"), "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
    page.ask(DROP, json.dumps(good() | {"name": name, "solutions": [name] * len(good()["steps"])}))
    page.tab.wait_for_selector("text=Your runs")
    page.settle()
    assert page.ask("window.hacked") is None
    assert page.ask("document.querySelectorAll('#explorer img, #explorer script').length") == 0
    assert page.ask("lab.explorer.state().run").startswith("_img_src_x")


def test_a_bad_file_leaves_the_page_as_it_was(show: Any) -> None:
    page = show("explorer", "#v1&run=d2_seed1")
    page.ask("() => scrollTo(0, document.body.scrollHeight)")
    page.ask(DROP, "no export")
    page.tab.wait_for_function("document.querySelector('.error').textContent")
    assert "it is not JSON" in page.error
    box = page.tab.locator(".error").bounding_box()
    assert 0 <= box["y"] <= page.ask("innerHeight") - box["height"]
    assert "mixed minimum" in page.finding


LINKS = {
    "#v0&seed=1": "made by another version",
    "#seed=1": "is no link of this page",
    "#abc": "is no link of this page",
    "#v1&noise=7": "damaged: noise=7 cannot be read",
    "#v1&noise=&pairs=x": "damaged: noise= cannot be read, and 1 more",
    "#v1&p1=1,NaN": "damaged",
    "#v1&__proto__=1": "damaged",
    "#v1&run=<b>": "damaged",
    "#v1&run=own": "no run named own",
    "#v1&p1=.1,.2,.3": "another dimension",
}


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_cannot_be_shown_is_a_sentence(show: Any, link: str) -> None:
    page = show("explorer", link)
    assert LINKS[link] in page.error
    assert page.ask("lab.explorer.state().run") == "d2_seed2"


def test_the_readable_part_of_a_damaged_link_is_shown(show: Any) -> None:
    page = show("explorer", "#v1&run=d2_seed1&noise=7&range=2&p1=0.1,0.2")
    found = page.ask(
        "() => { const { run, noise, range, moved } = lab.explorer.state(); return [run, noise, range, moved.p1]; }"
    )
    assert found == ["d2_seed1", 0, 2, [0.1, 0.2]]
    assert show("explorer", "#v1&run=d2_se&range=2").ask("lab.explorer.state().range") == 2


def test_a_state_is_a_link(show: Any) -> None:
    link = "#v1&run=d2_seed5&step=12&depth=3&damping=0.75&pairs=7&noise=0.2&range=1.5&seed=8&frozen=1&plus=1"
    link += "&w=0.5,-0.25&p3=0.1,-0.3"
    page = show("explorer", link)
    assert page.error == ""
    assert page.ask("lab.write(lab.explorer.state())") == link
    assert page.ask("Array.from(lab.explorer.now().w)") == [0.5, -0.25]
    page.tab.wait_for_timeout(400)
    assert page.tab.url.endswith(link)


def test_the_page_on_orders_reads_its_links(show: Any) -> None:
    assert "another version" in show("orders", "#v0").error
    page = show("orders", "#v1&count=40&noise=0.5")
    assert page.error == ""
    assert page.ask("lab.ordersPage.now().clouds.map(each => each.found.length)") == [40, 40, 40]


# --- what a reader does ---


@pytest.mark.parametrize("page", ["explorer", "orders"])
def test_keys_move_a_pair(show: Any, page: str) -> None:
    shown = show(page)
    before = shown.ask(f"Array.from(lab.{page if page == 'explorer' else 'ordersPage'}.now().x)")
    shown.tab.focus("g[aria-label^='pair 1:']")
    shown.tab.keyboard.press("ArrowRight")
    shown.settle()
    after = shown.ask(f"Array.from(lab.{page if page == 'explorer' else 'ordersPage'}.now().x)")
    assert after[0] > before[0]
    assert after[1] == pytest.approx(before[1], abs=1e-9)
    assert after[2:] == before[2:]
    assert shown.ask("document.activeElement.getAttribute('aria-label')").startswith("pair 1:")


def test_a_mouse_drags_a_pair_and_layer_and_descent_move_together(show: Any) -> None:
    page = show("explorer", viewport={"width": 1280, "height": 1400})
    box = page.tab.locator("g[aria-label^='pair 1:'] .ring").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = page.ask("Array.from(lab.explorer.now().paths.gd[1])")
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x + 30, y - 20, steps=3)
    page.tab.mouse.up()
    page.settle()
    step, layer = (np.array(page.ask(f"Array.from(lab.explorer.now().paths.{name}[1])")) for name in ("gd", "layer"))
    assert np.linalg.norm(step - before) > 1e-3
    assert np.linalg.norm(step - layer) < 0.05 * np.linalg.norm(step)


def centre(page: Shown, where: str) -> tuple[float, float]:
    box = page.tab.locator(where).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def swipe(page: Shown, x: float, y: float, up: float) -> None:
    hand = page.tab.context.new_cdp_session(page.tab)
    for kind, share in (("touchStart", 0.0), *(("touchMove", share / 6) for share in range(1, 7))):
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y - share * up}]})
        page.settle()
    hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.tab.wait_for_timeout(200)


CROSS, PAIR, PHONE = "g[aria-label^='true w']", "g[aria-label^='pair 1:']", {"width": 390, "height": 844}


@pytest.mark.parametrize(("where", "name"), [(CROSS, "w"), (PAIR, "x")])
def test_a_finger_drags_a_point_and_the_page_stays(show: Any, where: str, name: str) -> None:
    """Also up, as the page would scroll, and from a place beside the point, because fingers are wide."""
    page = show("explorer", viewport=PHONE, has_touch=True, is_mobile=True)
    page.ask("where => document.querySelector(where).scrollIntoView({ block: 'center' })", where)
    page.ask("() => { window.lost = 0; addEventListener('pointercancel', () => window.lost++, true); }")
    (x, y), top = centre(page, f"{where} .ring"), page.ask("scrollY")
    before = page.ask(f"Array.from(lab.explorer.now().{name})")
    swipe(page, x + 14, y + 8, 60)
    after = page.ask(f"Array.from(lab.explorer.now().{name})")
    assert after[1] > before[1]
    assert after[0] == pytest.approx(before[0], abs=1e-3)
    assert (page.ask("window.lost"), page.ask("scrollY")) == (0, top)


def test_a_finger_beside_all_points_scrolls_the_page(show: Any) -> None:
    page = show("explorer", viewport=PHONE, has_touch=True, is_mobile=True)
    page.ask("() => document.querySelector('.landscape').scrollIntoView({ block: 'center' })")
    top, before = page.ask("scrollY"), page.ask("lab.write(lab.explorer.state())")
    box = page.tab.locator(".landscape svg").bounding_box()
    swipe(page, box["x"] + 0.93 * box["width"], box["y"] + 0.85 * box["height"], 200)
    assert page.ask("scrollY") > top
    assert page.ask("lab.write(lab.explorer.state())") == before


ELEMENTS = """() => [...document.querySelectorAll('#explorer .card svg')].map(each =>
  each.outerHTML.split("<"))"""


def parts(element: str) -> list[str]:
    """Tag and attributes in any order, without what tags() remembers of a text."""
    return sorted(re.findall(r'[\w:-]+(?:="[^"]*")?', re.sub(r' data-said="[^"]*"', "", element)))


@pytest.mark.parametrize("visited", ["d10_seed0&plus=1&range=2", "d1_seed0&depth=5&plus=1", "d2_seed7&depth=9&noise=1"])
def test_a_picture_does_not_depend_on_those_before(show: Any, visited: str) -> None:
    """Element by element: what lies above what, and every attribute."""
    page = show("explorer", "#v1&plus=1&depth=2")
    before = page.ask(ELEMENTS)
    assert "true w" in str(before)
    for link in (f"#v1&run={visited}", "#v1&plus=1&depth=2"):
        page.ask("link => { location.hash = link }", link)
        page.tab.wait_for_function(
            "link => lab.write(lab.explorer.state()) === lab.write(lab.read(link).state)", arg=link
        )
        page.settle()
    after = page.ask(ELEMENTS)
    assert [[parts(each) for each in one] for one in after] == [[parts(each) for each in one] for one in before]


@pytest.mark.parametrize("w", [(4.416, -1.71), (0.02, 0.01), (-30, 55)])
def test_the_true_w_is_in_view_of_any_link(show: Any, w: tuple[float, float]) -> None:
    page = show("explorer", f"#v1&p0=0.273,-0.148&q=-0.118,-0.305&w={w[0]},{w[1]}&p1=0.6,-0.6")
    reach = page.ask("lab.explorer.now().reach")
    assert max(abs(w[0]) / (380 / 300), abs(w[1])) < reach < max(2, 2 * np.hypot(*w))
    places = [page.ask(f"document.querySelector(\"{CROSS}\").getAttribute('transform')")]
    assert np.hypot(*w) < 1 or "translate(401.0" not in places[0]


@pytest.mark.parametrize("link", ["d1_seed0&noise=1&pairs=40", "d1_seed0&p1=99,-60&q=9", "d2_seed2&p1=99,-60&q=9,9"])
def test_every_pair_of_a_link_is_in_the_picture(show: Any, link: str) -> None:
    page = show("explorer", f"#v1&run={link}", viewport={"width": 1280, "height": 1400})
    script = """() => [...document.querySelectorAll('.context .handle')].map(each => each.getAttribute('transform'))"""
    places = np.array([[float(n) for n in re.findall(r"[-\d.]+", each)] for each in page.ask(script)])
    assert len(places) > 5
    assert ((places >= [34, 8]) & (places <= [334, 308])).all()


@pytest.mark.parametrize("kind", ["explorer", "orders"])
def test_a_dragged_cross_stays_under_the_mouse(show: Any, kind: str) -> None:
    """The same pixel is the same w, also at the rim, after other moves and after the release."""
    page = show(kind, viewport={"width": 1280, "height": 1400})
    box, seen = page.tab.locator(".landscape svg").bounding_box(), {}
    places = [(0.93, 0.08), (0.5, 0.3), (0.3, 0.7), (0.93, 0.08), (0.48, 0.45), (0.3, 0.7)]
    for place in places:
        target = (box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"])
        page.tab.mouse.move(*centre(page, f"{CROSS} .ring"))
        page.tab.mouse.down()
        page.tab.mouse.move(*target, steps=4)
        page.tab.mouse.up()
        page.settle()
        assert centre(page, f"{CROSS} .ring") == pytest.approx(target, abs=2.5)
        w = page.ask(f"Array.from(lab.{'explorer' if kind == 'explorer' else 'ordersPage'}.now().w)")
        assert w == pytest.approx(seen.setdefault(place, w), abs=0.02)  # a pixel or two of the start


@pytest.mark.parametrize("run", [each.name for each in explorer_data.RUNS])
def test_each_run_is_drawn_at_its_first_and_last_step(show: Any, run: str) -> None:
    page = show("explorer", f"#v1&run={run}&step=0&plus=1")
    assert "training steps" in page.finding
    page.ask("link => { location.hash = link }", f"#v1&run={run}&range=3&noise=1&pairs=1")
    page.settle()
    page.settle()
    assert page.error == ""
    assert "NaN" not in page.ask("document.getElementById('explorer').innerHTML")


def test_what_there_is_to_find_is_said(show: Any) -> None:
    found = {
        "#v1": "lands nearly where one step of gradient descent lands",
        "#v1&noise=0.6": "ridge beats a step of gradient descent",
        "#v1&noise=1": "one step of gradient descent nearly catches ridge",
        "#v1&noise=1&depth=8": "more steps fit the noise",
        "#v1&range=3": "Far inputs break the trained layer, and not the algorithm",
        "#v1&range=3&frozen=1": "gradient descent fails in the same way",
        "#v1&run=d2_seed1": "a different solution: the mixed minimum",
        "#v1&run=d2_seed0": "stays on the rank-one plateau",
        "#v1&run=d2_seed0&step=30": "the layer is at: rank-one plateau",
        "#v1&pairs=2": "trained on 10 pairs",
        "#v1&run=d1_seed0": "swapped roles",
        "#v1&run=d2_shared&depth=2": "2 layers beat 2 steps",
    }
    page = show("explorer")
    for link, said in found.items():
        page.ask("link => { location.hash = link }", link)
        page.tab.wait_for_function("said => document.querySelector('.finding').textContent.includes(said)", arg=said)
    orders = show("orders")
    assert "lsa1 stays one point; twolayer becomes a smear" in orders.finding
    orders.ask("() => { location.hash = '#v1&count=2' }")
    orders.tab.wait_for_function(
        "() => document.querySelector('.finding').textContent.includes('moves with the order')"
    )


@pytest.mark.parametrize(("name", "what"), [("explorer", "lab.explorer"), ("orders", "lab.ordersPage")])
def test_what_plays_moves_until_it_is_stopped(show: Any, name: str, what: str) -> None:
    page, place = show(name), "step" if name == "explorer" else "count"
    page.tab.get_by_role("button", name="Play").click()
    page.tab.wait_for_function(f"() => {what}.state().{place} >= 2 && {what}.state().{place} < 40")
    page.tab.get_by_role("button", name="Stop").click()
    stopped = page.ask(f"{what}.state().{place}")
    page.tab.wait_for_timeout(400)
    assert page.ask(f"{what}.state().{place}") == stopped
    page.tab.get_by_role("button", name="Play").wait_for()


@pytest.mark.parametrize("name", ["explorer", "orders"])
def test_a_link_to_a_place_of_the_page_leaves_the_state(show: Any, name: str) -> None:
    """As the first link of every page does, which skips the navigation."""
    page = show(name, "#v1&noise=0.6")
    page.ask("() => { document.querySelector('p').id = 'a-place'; location.hash = '#a-place' }")
    page.tab.wait_for_timeout(100)
    assert page.ask("() => document.querySelector('p.error').textContent") == ""
    assert page.ask("lab.explorer.state().noise" if name == "explorer" else "lab.ordersPage.state().noise") == 0.6


@pytest.mark.parametrize("run", ["d2_seed0", "d2_seed2", "d10_seed0", "d2_shared"])
@pytest.mark.parametrize("more", ["step=0", "step=5&noise=1", "step=9&range=3&depth=2"])
def test_a_layer_whose_loss_has_not_begun_to_fall_is_not_trained_yet(show: Any, run: str, more: str) -> None:
    """Whatever the settings of the context."""
    finding = show("explorer", f"#v1&run={run}&{more}").finding
    assert "is not trained yet" in finding
    assert "plateau" not in finding


def test_the_weights_are_named_as_they_end(show: Any) -> None:
    named = {"d2_seed2": "gradient descent", "d2_seed1": "mixed", "d2_seed0": "plateau", "d1_seed0": "swapped"}
    for run, name in named.items():
        page = show("explorer", f"#v1&run={run}&step=0")
        assert name in page.tab.locator(".card h3", has_text="The weights").inner_text()


def test_losses_beyond_the_axis_are_marked(show: Any) -> None:
    page = show("explorer", "#v1&range=3&seed=5")
    depth = page.tab.locator(".third svg").last
    assert "beyond the axis" in depth.inner_html()
    assert depth.inner_html().count("l5 -9l5 9z") == 11  # layers 2 to 12
    assert "beyond the axis" not in show("explorer", "#v1&noise=0.5").tab.locator(".third svg").last.inner_html()


def test_a_new_context_can_be_undone(show: Any) -> None:
    page = show("explorer", "#v1&seed=8&p1=0.1,0.2")
    for button, seed, moved in (
        ("New context", 69, []),
        ("Undo new context", 8, ["p1"]),
        ("Undo moves", 8, []),
    ):
        page.tab.click(f"button:text-is('{button}')")
        page.settle()
        found = page.ask("[lab.explorer.state().seed, Object.keys(lab.explorer.state().moved)]")
        assert found == [seed, moved]
    assert page.tab.locator("button:text-is('Undo moves')").is_disabled()


def test_orders_are_shown_one_at_a_time(show: Any) -> None:
    page, number = (
        show("orders", "#v1&count=1"),
        "() => document.querySelector('[aria-label^=pair]').getAttribute('aria-valuetext')",
    )
    before = page.ask(number)
    seen = set()
    for count in (2, 3, 4):
        page.tab.click("text=Next order")
        page.settle()
        assert page.ask("lab.ordersPage.state().count") == count
        seen.add(page.ask(number))
    assert seen - {before}


def test_numbers_of_three_digits(tab: Any) -> None:
    found = tab.evaluate("() => [0.0023456, 0.5, 12.345, -1.5, 0, 0.00012].map(lab.number)")
    assert found == ["0.00235", "0.500", "12.3", "\u22121.50", "0", "1e\u22124"]


def test_on_a_phone_seeds_are_folded(show: Any) -> None:
    page = show("explorer", viewport=PHONE, has_touch=True, is_mobile=True)
    assert not page.tab.locator("button:has-text('seed 1')").is_visible()
    page.tab.click("summary")
    assert page.tab.locator("button:has-text('seed 1')").is_visible()


def test_a_saved_picture_is_one_svg_with_its_title(show: Any, tmp_path: Path) -> None:
    import xml.etree.ElementTree as xml

    page = show("explorer", "#v1&run=d2_seed1", accept_downloads=True)
    with page.tab.expect_download() as kept:
        page.tab.click("text=Save as SVG")
    kept.value.save_as(tmp_path / "state.svg")
    drawn = xml.parse(tmp_path / "state.svg").getroot()
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "This seed found a different solution: the mixed minimum" in texts
    with page.tab.expect_download() as kept:
        page.tab.click("text=Save as PNG")
    kept.value.save_as(tmp_path / "state.png")
    assert (tmp_path / "state.png").read_bytes().startswith(b"\x89PNG")
