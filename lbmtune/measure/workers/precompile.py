"""Texts that other processes compile while this one measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

from lbmtune.backend.protocol import Binary, Compiler
from lbmtune.codegen.program import Program
from lbmtune.cores import pool


@contextmanager
def compiled_ahead(compiler: Compiler, programs: Iterable[Program], processes: int) -> Iterator[Compiler]:
    """A compiler that makes each text once, and of which these are asked for soon, in this order.

    processes: that begin with them now, 0: none do; compiler: can be pickled, as the programs can. What failed there,
    or died, is compiled here when it is asked for, so that its error is heard as ever; so is any other text.
    """
    texts = {program.digest: program for program in programs}
    if not (processes and texts):
        yield _each_once(compiler, {})
        return
    with pool(min(processes, len(texts))) as workers:
        try:
            yield _each_once(compiler, {text: workers.submit(compiler, program) for text, program in texts.items()})
        finally:
            workers.shutdown(cancel_futures=True)


def _each_once(compiler: Compiler, begun: Mapping[str, Future[Binary]]) -> Compiler:
    made: dict[str, Binary] = {}

    def compiled(program: Program) -> Binary:
        text = program.digest
        if text not in made:
            made[text] = _made_elsewhere(begun.get(text)) or compiler(program)
        return made[text]

    return compiled


def _made_elsewhere(begun: Future[Binary] | None) -> Binary | None:
    """What comes of it, which is waited for; None where it fails, or nothing was begun."""
    return None if begun is None or begun.exception() else begun.result()
