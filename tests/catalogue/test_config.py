"""A configuration is data: its flat form, text form and key."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.config import (
    FAMILIES,
    CpuConfig,
    KernelConfig,
    Knob,
    completed,
    cpu,
    cuda,
    from_flat,
    parse_config,
)
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.knobs import own_knobs
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.layouts.layout import Layout
from lbmtune.errors import InputError
from lbmtune.records.legacy.configurations import previous_key

RECORDS = [record for families in FAMILIES.values() for record in families.values()]


def values_of(one: Knob) -> st.SearchStrategy[object]:
    if one.allowed:
        return st.sampled_from(one.allowed)
    if one.is_extent:
        return st.tuples(*[st.integers(0, 4096)] * (1 + str(one.default).count("x")))
    return st.sampled_from([one.default, *one.search]) if one.is_name else st.integers(0, 4096)


def layouts_of(record: type[KernelConfig]) -> st.SearchStrategy[Layout]:
    own = {name: [one for one in own_knobs(LAYOUTS[name]) if one.name not in record.without] for name in record.layouts}
    return st.one_of(
        *(st.builds(LAYOUTS[name], **{one.name: values_of(one) for one in knobs}) for name, knobs in own.items())
    )


def configs_of(record: type[KernelConfig]) -> st.SearchStrategy[KernelConfig]:
    own = {one.name: values_of(one) for one in own_knobs(record) if one.name != "layout"}
    return st.builds(record, layout=layouts_of(record), **own)


configs = st.one_of(*map(configs_of, RECORDS))

GOLDEN_KEYS = {
    "44cb7b95a169": cuda.Direct(),
    "8ccb28f13176": cpu.Direct(),
    "b9a5fc23b6f0": cuda.Direct(
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
        assert {name: str(filled[name]) for name in one.by_device} == {name: read[name] for name in one.by_device}
        assert parse_config(one.said) == one
    filled = completed({"backend": "cpu"}, device)
    assert [filled[name] for name in CpuConfig.by_device] == [7, 64], "what nobody has said is the device's"


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


def test_keys_of_version_0_1_are_still_found() -> None:
    """Users may have written them down."""
    previous = [previous_key(config) for config in GOLDEN_KEYS.values()]
    assert previous == ["61e608ff14f4", "0f70f9a96d7c", "2ca69c14ecd4"]


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_keys_do_not_depend_on_the_hash_seed(seed: str) -> None:
    code = (
        "from lbmtune.catalogue.config import *\n"
        "print(cuda.Direct().key, cpu.Direct().key, parse_config('storage=fp64,compute=fp64,scheme=aa').key)"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    here = (cuda.Direct(), cpu.Direct(), cuda.Direct(compute="fp64", scheme="aa", storage="fp64"))
    assert printed.stdout.split() == [config.key for config in here]


def test_missing_axes_take_their_default() -> None:
    assert parse_config("scheme=aa, block=64x2x1") == cuda.Direct(block=(64, 2, 1), scheme="aa")
    assert parse_config("backend=cpu,parallel_loop=zy") == cpu.Direct(parallel_loop="zy")
    assert parse_config("parallel_loop=zy", backend="cpu") == cpu.Direct(parallel_loop="zy")
    assert parse_config("") == cuda.Direct()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("shceme=aa", "unknown knob 'shceme' of family direct (cuda); did you mean 'scheme'?"),
        ("backend=cpu,block=1x1x1", "unknown knob 'block' of family direct (cpu); lbmtune list shows all."),
        (
            "steps=3",
            "steps is not a knob of family direct (family temporal-blocking of cuda has it); "
            "add family=temporal-blocking.",
        ),
        (
            "family=persistent,z_cells=3",
            "z_cells is not a knob of family persistent (family column of cuda has it); add family=column.",
        ),
        ("family=tempoal-blocking", "unknown family of cuda 'tempoal-blocking'; did you mean 'temporal-blocking'?"),
        ("layout=sao", "unknown layout 'sao'; did you mean 'soa'?"),
        ("layout=soa,width=64", "width=64 is not supported for layout=soa (use layout=aosoa or bundle-aosoa"),
        ("backend=cdua", "unknown backend 'cdua'; did you mean 'cuda'?"),
        ("block=256", "block='256' is not of the form 256x1x1; give three whole numbers."),
        ("block=256x1xq", "block='256x1xq' is not of the form 256x1x1; give three whole numbers."),
        ("cells_per_thread=two", "cells_per_thread='two' is not a whole number; use 1, 2, 4 or 8."),
        (
            "scheme",
            "configuration part 'scheme' is not of the form knob=value; write for example scheme=aa, "
            "the 12 digits of a trial's key, or a best.json.",
        ),
    ],
)
def test_bad_text_is_bad_input_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_config(text)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (cuda.Direct(scheme="esotwist"), "unknown scheme 'esotwist'; did you mean 'esoteric-twist'?"),
        (cuda.Direct(storage="fp61"), "unknown storage 'fp61'; did you mean"),
        (cuda.Direct(compute="fp23"), "unknown compute 'fp23'; did you mean 'fp32'?"),
    ],
)
def test_unknown_names_are_bad_input_with_a_suggestion(config: KernelConfig, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        _ = config.propagation, config.memory, config.stored, config.computed
    assert str(raised.value).startswith(sentence)
