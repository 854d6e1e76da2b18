"""A configuration is data: its flat form, text form and key."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lbmtune.catalogue.axes import completed

from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig, cpu, cuda, from_flat, parse_config
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.precision import COMPUTES, STORAGES
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.errors import InputError
from tests.support.configs import old_cuda

small = st.integers(0, 4096)
shared = {
    "scheme": st.sampled_from(sorted(SCHEMES)),
    "layout": st.sampled_from(sorted(LAYOUTS)),
    "width": small,
    "padding": small,
    "group": small,
    "layout_tile": st.tuples(small, small, small),
    "storage": st.sampled_from(sorted(STORAGES)),
    "compute": st.sampled_from(sorted(COMPUTES)),
}
cuda_configs = st.builds(
    CudaConfig,
    **shared,
    block=st.tuples(small, small, small),
    cells_per_thread=small,
    max_registers=small,
    min_blocks=small,
    wrap=st.sampled_from(["arithmetic", "ghost"]),
)
cpu_configs = st.builds(
    CpuConfig,
    **shared,
    threads=small,
    vector_bits=small,
    loop=st.sampled_from(["z", "zy", "tile"]),
    tile_y=small,
    tile_z=small,
    row_padding=small,
    row_offset=small,
    streaming_stores=small,
    wrap=st.sampled_from(["ghost", "select"]),
)
configs = st.one_of(cuda_configs, cpu_configs)

GOLDEN_KEYS = {
    "61e608ff14f4": cuda.Direct(),
    "0f70f9a96d7c": cpu.Direct(),
    "2ca69c14ecd4": cuda.Direct(
        block=(32, 4, 2), cells_per_thread=4, register_limit="64-registers", scheme="aa", storage="fp16s"
    ),
}


@given(configs)
def test_flat_form_round_trips(config: KernelConfig) -> None:
    flat = config.flat()
    assert all(isinstance(value, int | str) for value in flat.values())
    assert list(flat) == sorted(flat)
    assert from_flat(flat) == config


@given(configs)
def test_text_form_round_trips(config: KernelConfig) -> None:
    assert parse_config(str(config)) == config
    assert parse_config(config.brief) == config


@given(configs)
def test_what_is_said_of_a_configuration_means_the_same_on_any_device(config: KernelConfig) -> None:
    """Whatever it has, and were it all by default, which a device would fill in."""
    device = Limits(cores=7, vector_bits=64)
    for one in (config, type(config)()):
        read = {name: value for name, _, value in (part.partition("=") for part in one.said.split(","))}
        filled = completed(read, device)
        assert {name: str(filled[name]) for name in one.BY_DEVICE} == {name: read[name] for name in one.BY_DEVICE}
        assert parse_config(one.said) == one
    filled = completed({"backend": "cpu"}, device)
    assert [filled[name] for name in CpuConfig.BY_DEVICE] == [7, 64], "what nobody has said is the device's"


@given(configs)
def test_strings_from_a_store_read_back_as_the_same(config: KernelConfig) -> None:
    assert from_flat({name: str(value) for name, value in config.flat().items()}) == config


@given(configs, configs)
def test_keys_tell_configurations_apart(one: KernelConfig, other: KernelConfig) -> None:
    assert (one.key == other.key) == (one == other)


@pytest.mark.parametrize(("key", "config"), GOLDEN_KEYS.items())
def test_golden_keys(key: str, config: KernelConfig) -> None:
    """A key names a configuration in records and on the command line: it must not change."""
    assert config.key == key


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_keys_do_not_depend_on_the_hash_seed(seed: str) -> None:
    code = (
        "from lbmtune.catalogue.config import *\n"
        "print(CudaConfig().key, CpuConfig().key, parse_config('storage=fp64,compute=fp64,scheme=aa').key)"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    here = (cuda.Direct(), cpu.Direct(), cuda.Direct(compute="fp64", scheme="aa", storage="fp64"))
    assert printed.stdout.split() == [config.key for config in here]


def test_missing_axes_take_their_default() -> None:
    assert parse_config("scheme=aa, block=64x2x1") == cuda.Direct(block=(64, 2, 1), scheme="aa")
    assert parse_config("backend=cpu,loop=zy") == cpu.Direct(parallel_loop="zy")
    assert parse_config("loop=zy", backend="cpu") == cpu.Direct(parallel_loop="zy")
    assert parse_config("") == cuda.Direct()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("shceme=aa", "unknown axis of a cuda configuration 'shceme'; did you mean 'scheme'?"),
        ("backend=cpu,block=1x1x1", "unknown axis of a cpu configuration 'block'; did you mean"),
        ("backend=cdua", "unknown backend 'cdua'; did you mean 'cuda'?"),
        ("block=256", "axis block='256' is not three numbers such as 256x1x1; correct the value."),
        ("block=256x1xq", "axis block='256x1xq' is not three numbers such as 256x1x1; correct the value."),
        ("cells_per_thread=two", "axis cells_per_thread='two' is not a whole number; correct the value."),
        ("scheme", "configuration part 'scheme' is not of the form axis=value; write for example scheme=aa."),
    ],
)
def test_bad_text_is_bad_input_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_config(text)
    assert sentence in str(raised.value) or "choose one of" in str(raised.value)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (cuda.Direct(scheme="esotwist"), "unknown scheme 'esotwist'; did you mean 'esoteric-twist'?"),
        (old_cuda(layout="sao"), "unknown layout 'sao'; did you mean"),
        (cuda.Direct(storage="fp61"), "unknown storage 'fp61'; did you mean"),
        (cuda.Direct(compute="fp23"), "unknown compute 'fp23'; did you mean 'fp32'?"),
    ],
)
def test_unknown_names_are_bad_input_with_a_suggestion(config: KernelConfig, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        _ = config.propagation, config.memory, config.stored, config.computed
    assert str(raised.value).startswith(sentence)
