"""What is done with each environment variable that JAX, XLA and the libraries under them read.

`RECORDED` ones are conditions of bitwise identity. `TABLE` has those whose value may be refused, with the values that
are not, under which results are the same, and the reason. What is in neither has no effect on results.
Uses only the standard library, as old Pythons have it: `lab.environment` imports it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

# Conditions of bitwise identity, beside versions and threads: flags of the compilers, and how the libraries of linear
# algebra divide their sums. meta.json has their values.
RECORDED = (
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
)

# What JAX reads as such a value; it takes words for truth in any case.
_YES, _NO = "y|yes|t|true|on|1", "n|no|f|false|off|0"
ON, OFF, EITHER = f"(?i){_YES}", f"(?i){_NO}", f"(?i){_YES}|{_NO}"
WHOLE, NUMBER, ANY = r"[+-]?\d+", r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", "(?s).*"


class Group(NamedTuple):
    """Variables that have these values or none: a regular expression; and why other values are refused."""

    values: str
    why: str
    names: str


# Values that JAX cannot read end it with a traceback; these name them before.
_BOOLEAN, _WHOLE, _WORD = "JAX takes 0 or 1", "JAX takes a whole number", "JAX does not know this value"
_NUMERICS = "it changes what is computed, and no result of this laboratory was tested under it"
_DEBUGGING = "it makes JAX raise errors in correct programs, or where a run would end with the status diverged"
_COMPILER = "it changes the compiled programs, and no result of this laboratory was tested under it"

TABLE = (
    # No effect on results: messages, caches, memory, several hosts.
    Group(
        EITHER,
        _BOOLEAN,
        """JAX_CHECK_PROXY_ENVS JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY JAX_CPU_ENABLE_ASYNC_DISPATCH
        JAX_DEBUG_LEAKED_CLIENTS_ON_CLEAR_BACKENDS JAX_DISTRIBUTED_DEBUG JAX_ENABLE_COMPILATION_CACHE
        JAX_ENABLE_PREEMPTION_SERVICE JAX_ENABLE_RECOVERABILITY JAX_EXPLAIN_CACHE_MISSES
        JAX_FORCE_DCN_CROSS_HOST_TRANSFERS JAX_INCLUDE_DEBUG_INFO_IN_DUMPS JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS
        JAX_LOG_CHECKPOINT_RESIDUALS JAX_LOG_COMPILES JAX_PALLAS_VERBOSE_ERRORS JAX_PPRINT_USE_COLOR
        JAX_RAISE_PERSISTENT_CACHE_ERRORS JAX_REMOVE_CUSTOM_PARTITIONING_PTR_FROM_CACHE_KEY
        JAX_SHARE_BINARY_BETWEEN_HOSTS""",
    ),
    Group(
        WHOLE,
        _WHOLE,
        """JAX_CAPTURED_CONSTANTS_REPORT_FRAMES JAX_CAPTURED_CONSTANTS_WARN_BYTES JAX_COMPILATION_CACHE_MAX_SIZE
        JAX_COMPILER_DETAILED_LOGGING_MIN_OPS JAX_CPU_GET_GLOBAL_TOPOLOGY_TIMEOUT_MINUTES
        JAX_CPU_GET_LOCAL_TOPOLOGY_TIMEOUT_MINUTES JAX_CROSS_HOST_TRANSFER_TIMEOUT_SECONDS
        JAX_CROSS_HOST_TRANSFER_TRANSFER_SIZE JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES
        JAX_SHARE_BINARY_BETWEEN_HOSTS_TIMEOUT_MS JAX_TRACEBACK_IN_LOCATIONS_LIMIT
        JAX_TRACER_ERROR_NUM_TRACEBACK_FRAMES XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB""",
    ),
    Group(
        NUMBER,
        "it takes a number",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS XLA_CLIENT_MEM_FRACTION XLA_PYTHON_CLIENT_MEM_FRACTION",
    ),
    Group(
        ANY,
        "",
        """JAX_COMPILATION_CACHE_DIR JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS JAX_CROSS_HOST_TRANSPORT_ADDRESSES
        JAX_CUDA_VISIBLE_DEVICES JAX_DEBUG_LOG_MODULES JAX_DUMP_IR_MODES JAX_DUMP_IR_TO JAX_ONEAPI_VISIBLE_DEVICES
        JAX_PLATFORMS JAX_ROCM_VISIBLE_DEVICES JAX_SOURCE_URL_SCHEMA XLA_PYTHON_CLIENT_PREALLOCATE""",
    ),
    Group(r"(?s)\s*-.*", "it names a file, whose flags would not be recorded; give the flags themselves", "XLA_FLAGS"),
    Group("NOTSET|DEBUG|INFO|WARNING|ERROR|CRITICAL", _WORD, "JAX_LOGGING_LEVEL"),
    Group("off|tracebackhide|remove_frames|quiet_remove_frames|auto", _WORD, "JAX_TRACEBACK_FILTERING"),
    Group("(?i)default|platform|bfc|cuda_async|vmm", _WORD, "XLA_PYTHON_CLIENT_ALLOCATOR"),
    Group("allow|log", "the other guard ends programs that are right", "JAX_ARRAY_GARBAGE_COLLECTION_GUARD"),
    Group("allow|raise", "its warnings are of no use here", "JAX_NUMPY_RANK_PROMOTION"),
    # Refused, but for JAX's default.
    Group(OFF, "runs compute in float32", "JAX_ENABLE_X64"),
    Group(OFF, "a training step is a compiled program", "JAX_DISABLE_JIT JAX_NO_EXECUTION JAX_NO_TRACING"),
    Group("highest|float32", "matrix products have the highest precision here", "JAX_DEFAULT_MATMUL_PRECISION"),
    Group("", "JAX_PLATFORMS and CUDA_VISIBLE_DEVICES choose devices here", "JAX_DEFAULT_DEVICE JAX_BACKEND_TARGET"),
    Group("|cpu", "JAX_PLATFORMS and CUDA_VISIBLE_DEVICES choose devices here", "JAX_PLATFORM_NAME JAX_XLA_BACKEND"),
    Group("-1|[1-9]\\d{0,2}", "it takes a whole number from 1 to 999", "JAX_NUM_CPU_DEVICES"),
    Group("standard", _NUMERICS, "JAX_NUMPY_DTYPE_PROMOTION"),
    Group("threefry2x32", _NUMERICS, "JAX_DEFAULT_PRNG_IMPL"),
    Group("allow", _NUMERICS, "JAX_LEGACY_PRNG_KEY"),
    Group("warn", _NUMERICS, "JAX_EXPLICIT_X64_DTYPES"),
    Group("0", _NUMERICS, "JAX_RANDOM_SEED_OFFSET"),
    Group(ON, _NUMERICS, "JAX_ALLOW_F16_REDUCTIONS JAX_THREEFRY_PARTITIONABLE"),
    Group(
        OFF,
        _NUMERICS,
        """EAGER_CONSTANT_FOLDING JAX2TF_ASSOCIATIVE_SCAN_REDUCTIONS JAX_ENABLE_CUSTOM_PRNG
        JAX_HIGH_DYNAMIC_RANGE_GUMBEL JAX_SOFTMAX_CUSTOM_JVP JAX_THREEFRY_GPU_KERNEL_LOWERING""",
    ),
    Group(
        OFF,
        _DEBUGGING,
        """CHECK_VMA JAX_CHECK_STATIC_INDICES JAX_CHECK_TRACER_LEAKS JAX_COMPILATION_CACHE_CHECK_CONTENTS
        JAX_DEBUG_INFS JAX_DEBUG_KEY_REUSE JAX_DEBUG_NANS JAX_DISABLE_BWD_CHECKS JAX_DISABLE_VMAP_SHMAP_ERROR
        JAX_DISALLOW_MESH_CONTEXT_MANAGER JAX_ENABLE_CHECKS JAX_EXPERIMENTAL_UNSAFE_XLA_RUNTIME_ERRORS
        JAX_PALLAS_ENABLE_DEBUG_CHECKS JAX_PALLAS_POISON_BUFFERS JAX_THREAD_GUARD""",
    ),
    Group("off", _DEBUGGING, "JAX_SEND_TRACEBACK_TO_RUNTIME"),
    Group(ON, _DEBUGGING, "JAX_MUTABLE_ARRAY_CHECKS"),
    Group(
        "ignore",
        _DEBUGGING,
        "JAX_ERROR_CHECKING_BEHAVIOR_DIVIDE JAX_ERROR_CHECKING_BEHAVIOR_NAN JAX_ERROR_CHECKING_BEHAVIOR_OOB",
    ),
    Group(
        "allow",
        _DEBUGGING,
        """JAX_TRANSFER_GUARD JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE JAX_TRANSFER_GUARD_DEVICE_TO_HOST
        JAX_TRANSFER_GUARD_HOST_TO_DEVICE""",
    ),
    Group(
        OFF,
        _COMPILER,
        """JAX_BCOO_CUSPARSE_LOWERING JAX_COMPILATION_CACHE_EXPECT_PGLE JAX_CUSTOM_VJP3 JAX_DISABLE_MOST_OPTIMIZATIONS
        JAX_ENABLE_PGLE JAX_EXPORT_IGNORE_FORWARD_COMPATIBILITY JAX_MOSAIC_ALLOW_HLO
        JAX_RAGGED_DOT_USE_GPU_PALLAS_TRITON_LOWERING JAX_REFS_TO_PINS JAX_REMAT3
        JAX_REMOVE_SIZE_ONE_MESH_AXIS_FROM_TYPE JAX_SCAN3 JAX_USE_EMIT_PIPELINE_PRIMITIVE
        JAX_USE_SIMPLIFIED_JAXPR_CONSTANTS""",
    ),
    Group(
        ON,
        _COMPILER,
        """JAX2TF_DEFAULT_NATIVE_SERIALIZATION JAX_AUTO_PCAST JAX_COMPILER_ENABLE_REMAT_PASS JAX_PALLAS_USE_MOSAIC_GPU
        JAX_RAGGED_DOT_USE_RAGGED_DOT_INSTRUCTION JAX_SORT_DEVICES_BY_PROCESS_INDEX JAX_USE_DIRECT_LINEARIZE
        JAX_USE_SHARDY_PARTITIONER""",
    ),
    Group("0", _COMPILER, "JAX_SERIALIZATION_VERSION JAX_XLA_PROFILE_VERSION MOCK_NUM_GPU_PROCESSES"),
    Group(r"0(\.0*)?", _COMPILER, "JAX_EXEC_TIME_OPTIMIZATION_EFFORT JAX_MEMORY_FITTING_EFFORT"),
    Group("10", _COMPILER, "JAX_EXPORT_CALLING_CONVENTION_VERSION"),
    Group("32", _COMPILER, "JAX_EMBEDDED_CONSTANTS_MAX_BYTES"),
    Group("90", _COMPILER, "JAX_PGLE_AGGREGATION_PERCENTILE"),
    Group("3", _COMPILER, "JAX_PGLE_PROFILING_RUNS"),
    Group("UNKNOWN", _COMPILER, "JAX_OPTIMIZATION_LEVEL"),
    Group("O2", _COMPILER, "JAX_MEMORY_FITTING_LEVEL"),
    Group("auto", _COMPILER, "JAX_USE_MAGMA"),
    Group("gloo", _COMPILER, "JAX_CPU_COLLECTIVES_IMPLEMENTATION"),
    Group("xla_gpu_per_fusion_autotune_cache_dir", _COMPILER, "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"),
    Group(
        "",
        _COMPILER,
        "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX JAX_MOCK_GPU_TOPOLOGY JAX_PJRT_CLIENT_CREATE_OPTIONS",
    ),
)
GROUP_OF = {name: group for group in TABLE for name in group.names.split()}


def recorded(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The values of the recorded variables; "" for one that is unset."""
    return {name: " ".join(variables.get(name, "").split()) for name in RECORDED}


def unset_empty(variables: MutableMapping[str, str] = os.environ) -> None:
    """Removes the empty variables of the table, some of which JAX cannot read."""
    for name in [name for name in GROUP_OF if variables.get(name) == ""]:
        del variables[name]


def refusal(variables: Mapping[str, str] = os.environ) -> str | None:
    """A sentence on the first variable whose value is refused; None if there is none. An empty one counts as unset."""
    for name, group in GROUP_OF.items():
        value = variables.get(name, "")
        if value and not re.fullmatch(group.values, value):
            return f"{name} is {value!r}: {group.why}; unset it"
    return None
