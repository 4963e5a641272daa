import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32 as jax_threefry
from scipy import stats

from icl_lab.src import prng

WORD = 2**32
WIDTHS = (8, 16, 32, 64)
SHAPES = ((), (0,), (1,), (7,), (3, 5))
MANY = 1 << 16

# Random123's known-answer tests for Threefry-2x32-20: key, block, encrypted block (Salmon et al. 2011).
KNOWN_ANSWERS = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((WORD - 1, WORD - 1), (WORD - 1, WORD - 1), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)

# The first words of seed 2026, printed by the reference below.
GOLDEN = [3789761601, 2381190641, 3896460566, 119823817, 1119404671]


def threefry(key, block):
    """Threefry-2x32-20 in Python's whole numbers, from the paper's Sec. 3.2: rotate, mix, inject every four rounds."""
    injected = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    a, b = (block[0] + injected[0]) % WORD, (block[1] + injected[1]) % WORD
    for number, turn in enumerate((13, 15, 26, 6, 17, 29, 16, 24) * 2 + (13, 15, 26, 6), start=1):
        a = (a + b) % WORD
        b = ((b << turn) % WORD | b >> (32 - turn)) ^ a
        if number % 4 == 0:
            group = number // 4
            a = (a + injected[group % 3]) % WORD
            b = (b + injected[(group + 1) % 3] + group) % WORD
    return a, b


def reference_words(seed, count):
    """The stream of 32-bit words of a seed: first words of all blocks, then the second ones."""
    blocks = [threefry((0, seed), (0, index)) for index in range((count + 1) // 2)]
    return np.array([first for first, _ in blocks] + [second for _, second in blocks], np.uint32)[:count]


def wide(keys):
    """Keys as 64-bit whole numbers."""
    words = np.asarray(jax.random.key_data(keys)).astype(np.uint64).reshape(-1, 2)
    return words[:, 0] << np.uint64(32) | words[:, 1]


@pytest.mark.parametrize(("key", "block", "answer"), KNOWN_ANSWERS)
def test_known_answers(key, block, answer):
    words = prng.threefry_2x32(*(jnp.uint32(word) for word in key + block))
    assert tuple(int(word) for word in words) == answer
    assert threefry(key, block) == answer  # the test's own reference


def test_equals_the_cipher_of_jax():
    rng = np.random.default_rng(0)
    keys, blocks = (jnp.asarray(rng.integers(0, WORD, (2, 1000), dtype=np.uint32)) for _ in range(2))
    ours = jnp.stack(prng.threefry_2x32(*keys, *blocks))
    theirs = jax.vmap(lambda key, block: jax_threefry(key, block), in_axes=1, out_axes=1)(keys, blocks)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [(1,), (10,), (3, 7)])
def test_equals_the_stream_of_jax(shape, x64):
    """JAX's partitionable layout: both words of block (0, i) for 64 bits, their xor for 32."""
    ours = prng.key(7)
    with jax.threefry_partitionable(True):
        theirs = jax.random.wrap_key_data(jax.random.key_data(ours), impl="threefry2x32")
        both, folded = (jax.random.bits(theirs, shape, dtype) for dtype in ("uint64", "uint32"))
    np.testing.assert_array_equal(jax.random.bits(ours, shape, "uint64"), both)
    words = jax.random.bits(ours, (2, *shape), "uint32")
    np.testing.assert_array_equal(words[0] ^ words[1], folded)


def test_the_stream_does_not_depend_on_the_flag_of_jax():
    drawn = []
    for flag in (False, True):
        with jax.threefry_partitionable(flag):
            key = prng.key(5)
            drawn.append(np.concatenate([jax.random.bits(key, (9,)), *jax.random.key_data(jax.random.split(key))]))
    np.testing.assert_array_equal(drawn[0], drawn[1])


def test_golden_stream():
    """The stream is part of every result: these words must never change."""
    words = np.asarray(jax.random.bits(prng.key(2026), (5,)))
    np.testing.assert_array_equal(words, reference_words(2026, 5))
    assert words.tolist() == GOLDEN


@pytest.mark.parametrize("shape", SHAPES)
def test_layout_of_every_width(shape, x64):
    size = int(np.prod(shape, dtype=int))
    words = reference_words(11, 2 * size + 2)
    blocks = np.array([threefry((0, 11), (0, index)) for index in range(size)], np.uint64).reshape(-1, 2)
    expected = {
        width: reference_words(11, -(-size * width // 32)).view(f"<u{width // 8}")[:size] for width in WIDTHS[:3]
    }
    expected[64] = blocks[:, 0] << np.uint64(32) | blocks[:, 1]
    assert len(set(words.tolist())) == len(words)
    for width in WIDTHS:
        bits = jax.random.bits(prng.key(11), shape, f"uint{width}")
        assert bits.dtype == f"uint{width}"
        np.testing.assert_array_equal(bits, expected[width].reshape(shape))


def test_wide_numbers_begin_alike_at_every_size(x64):
    key = prng.key(3)
    long = jax.random.bits(key, (50,), "uint64")
    for size in (0, 1, 17):
        np.testing.assert_array_equal(jax.random.bits(key, (size,), "uint64"), long[:size])


def test_an_odd_count_drops_the_last_word():
    key = prng.key(3)
    np.testing.assert_array_equal(jax.random.bits(key, (31,)), jax.random.bits(key, (32,))[:31])


def test_refuses_other_widths_and_too_many_words():
    with pytest.raises(ValueError, match="not 24"):
        prng.random_bits(jnp.zeros(2, jnp.uint32), 24, (3,))
    with pytest.raises(ValueError, match="fewer than 2\\^32"):
        jax.random.bits(prng.key(0), (WORD,))


def draw_everything(key, number):
    """Bits of all widths and derived keys, as arrays."""
    derived = [jax.random.key_data(keys) for keys in (jax.random.split(key, 3), jax.random.fold_in(key, number))]
    return [jax.random.bits(key, (7,), f"uint{width}") for width in WIDTHS] + derived


def test_vmap_equals_a_loop_and_jit_equals_eager(x64):
    keys, numbers = (
        jax.random.wrap_key_data(jnp.arange(8, dtype="uint32").reshape(4, 2), impl=prng.THREEFRY),
        jnp.arange(4),
    )
    loop = [draw_everything(key, number) for key, number in zip(keys, numbers, strict=True)]
    together = jax.jit(jax.vmap(draw_everything))(keys, numbers)
    for rows, batched in zip(zip(*loop, strict=True), together, strict=True):
        np.testing.assert_array_equal(batched, np.stack(rows))


def test_split_and_fold_in_are_blocks_of_their_own_domains():
    key = prng.key(9)
    children = np.asarray(jax.random.key_data(jax.random.split(key, (2, 3)))).reshape(-1, 2)
    assert [tuple(child) for child in children.tolist()] == [threefry((0, 9), (1 << 30, i)) for i in range(6)]
    for number in (0, 1, 12345, WORD - 1):
        folded = tuple(jax.random.key_data(jax.random.fold_in(key, number)).tolist())
        assert folded == threefry((0, 9), (1 << 31, number))


def test_no_two_derived_keys_or_blocks_collide(x64):
    """A key, its children by split and by fold_in, its raw 64-bit blocks, grandchildren by both ways: all differ."""
    key = prng.key(4)
    children = jax.random.split(key, 3000)
    folded = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(3000))
    grandchildren = [jax.vmap(lambda child: jax.random.split(child, 4))(group) for group in (children, folded)]
    refolded = [
        jax.vmap(lambda child: jax.vmap(jax.random.fold_in, (None, 0))(child, jnp.arange(4)))(group)
        for group in (children, folded)
    ]
    keys = [wide(group) for group in (key[None], children, folded, *grandchildren, *refolded)]
    everything = np.concatenate([*keys, np.asarray(jax.random.bits(key, (3000,), "uint64"))])
    assert len(everything) == 1 + 3 * 3000 + 4 * 12_000
    assert len(np.unique(everything)) == len(everything)


def test_narrow_seeds_fill_the_low_word():
    assert jax.random.key_data(prng.key(0)).tolist() == [0, 0]
    assert jax.random.key_data(prng.key(WORD // 2 - 1)).tolist() == [0, WORD // 2 - 1]
    assert jax.random.key_data(prng.key(jnp.uint32(WORD - 1))).tolist() == [0, WORD - 1]


@pytest.mark.parametrize("seed", [0, 1, WORD - 1, WORD, 5 * WORD + 3, 2**63 - 1])
def test_wide_seeds_fill_both_words(seed, x64):
    assert jax.random.key_data(prng.key(seed)).tolist() == [seed >> 32, seed % WORD]


def test_purposes_are_pinned():
    """Renumbering a purpose changes every result."""
    assert {purpose.name: purpose.value for purpose in prng.Purpose} == {
        "INIT": 0,
        "TRAIN": 1,
        "EVAL": 2,
        "TEST_SET": 3,
        "STEP_SIZE": 4,
        "CORRUPTED_STEP_SIZE": 5,
        "POOL": 6,
        "LATENT": 7,
        "ROOT": 8,
        "LATENT_TEST_SET": 9,
        "PATH": 10,
        "IDEALISED": 11,
        "POSITION_STEPS": 12,
        "LLC_TASKS": 13,
        "LLC_CHAIN": 14,
        "SAMPLE": 15,
        "TASK": 16,
        "INPUT": 17,
        "QUERY": 18,
        "OBSERVATION": 19,
        "DISTRACTOR": 20,
        "NOISE_MASK": 21,
        "NOISE_VALUE": 22,
        "INPUT_DISTRIBUTION": 23,
        "DISTRACTOR_PLACE": 24,
        "CHOICE": 25,
        "AXES": 26,
        "EIGENVALUES": 27,
        "TRAIN_FROM": 28,
        "FITTED": 29,
        "ANNEALED": 30,
    }


@pytest.mark.parametrize("purpose", list(prng.Purpose))
def test_purpose_key_is_a_block_of_the_fold_in_domain(purpose):
    derived = jax.random.key_data(prng.purpose_key(prng.key(6), purpose)).tolist()
    assert tuple(derived) == threefry((0, 6), (1 << 31, purpose.value))


# Statistical tests. Seeds are fixed, so none can fail by luck; a correct generator passes p > 1e-4 at almost any seed.
LEAST_P = 1e-4
MOST_SIGMAS = 4.5


def uniforms(seed, count=MANY):
    return np.asarray(jax.random.uniform(prng.key(seed), (count,)), np.float64)


def correlation_sigmas(a, b):
    """The correlation of two samples in standard errors, 1/sqrt(n) if they are independent."""
    return abs(np.corrcoef(a, b)[0, 1]) * np.sqrt(len(a))


@pytest.mark.parametrize("width", [8, 16, 32])
def test_bytes_are_uniform(width):
    octets = np.asarray(jax.random.bits(prng.key(21), (MANY,), f"uint{width}")).view(np.uint8)
    assert stats.chisquare(np.bincount(octets, minlength=256)).pvalue > LEAST_P


def test_every_bit_is_balanced():
    octets = np.asarray(jax.random.bits(prng.key(22), (MANY,))).view(np.uint8).reshape(MANY, 4)
    ones = np.unpackbits(octets, axis=1).sum(axis=0)
    assert ones.shape == (32,)
    assert np.max(np.abs(ones - MANY / 2)) < MOST_SIGMAS * np.sqrt(MANY) / 2


def test_bits_of_a_word_are_independent_of_each_other():
    octets = np.asarray(jax.random.bits(prng.key(23), (MANY,))).view(np.uint8).reshape(MANY, 4)
    table = np.corrcoef(np.unpackbits(octets, axis=1).T.astype(float)) * np.sqrt(MANY)
    assert np.max(np.abs(table[np.triu_indices(32, 1)])) < MOST_SIGMAS


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_uniforms_follow_their_law(seed):
    sample = uniforms(seed)
    assert sample.min() >= 0
    assert sample.max() < 1
    assert stats.kstest(sample, "uniform").pvalue > LEAST_P
    assert abs(sample.mean() - 1 / 2) < MOST_SIGMAS * np.sqrt(1 / 12 / MANY)
    assert abs(sample.var() - 1 / 12) < MOST_SIGMAS * np.sqrt(1 / 180 / MANY)  # var of (u - 1/2)^2 is 1/180


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_normals_follow_their_law(seed):
    sample = np.asarray(jax.random.normal(prng.key(seed), (MANY,)), np.float64)
    assert stats.kstest(sample, "norm").pvalue > LEAST_P
    # E z^k is 0, 1, 0, 3 and its variance E z^2k - (E z^k)^2 is 1, 2, 15, 96
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(sample**power) - moment) < MOST_SIGMAS * np.sqrt(variance / MANY)


def test_the_two_words_of_a_block_are_independent():
    first, second = uniforms(24).reshape(2, -1)
    assert correlation_sigmas(first, second) < MOST_SIGMAS
    table = np.histogram2d(first, second, bins=16, range=((0, 1), (0, 1)))[0]
    assert stats.chisquare(table.ravel()).pvalue > LEAST_P


@pytest.mark.parametrize("seed", [0, 1, 1000, 2**31 - 2])
def test_neighbouring_seeds_are_independent(seed):
    one, next_one = uniforms(seed), uniforms(seed + 1)
    assert correlation_sigmas(one, next_one) < MOST_SIGMAS
    table = np.histogram2d(one, next_one, bins=16, range=((0, 1), (0, 1)))[0]
    assert stats.chisquare(table.ravel()).pvalue > LEAST_P


@pytest.mark.parametrize("lag", [1, 2, 3, 10, 64, 1000])
def test_no_correlation_at_a_lag(lag):
    sample = uniforms(25)
    assert correlation_sigmas(sample[:-lag], sample[lag:]) < MOST_SIGMAS


def test_keys_of_consecutive_steps_are_independent():
    """fold_in by the step number, first word each: how training batches are keyed."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(prng.key(26), jnp.arange(MANY))
    sample = np.asarray(jax.vmap(jax.random.uniform)(keys), np.float64)
    assert stats.kstest(sample, "uniform").pvalue > LEAST_P
    assert correlation_sigmas(sample[:-1], sample[1:]) < MOST_SIGMAS


@pytest.mark.parametrize(
    ("width", "shape"), [(32, (2**16, 2**16)), (64, (2**31,)), (64, (2**16, 2**15)), (8, (2**34,))]
)
def test_no_key_is_asked_for_more_words_than_it_has(width: int, shape: tuple[int, ...]) -> None:
    """Counters are 32-bit: beyond, blocks would repeat. Nothing is drawn, for the program alone is made."""
    draw = jax.jit(lambda key: jax.random.bits(key, shape, f"uint{width}"))
    with jax.enable_x64(True), pytest.raises(ValueError, match=r"fewer than 2\^32;"):
        draw.lower(prng.key(0))
