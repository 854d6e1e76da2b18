"""Compile programs in other processes while this one measures."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

from lbmtune.backend.protocol import Binary, Compiler
from lbmtune.codegen.program import Program
from lbmtune.process_pool import pool


@contextmanager
def precompiled(compiler: Compiler, programs: Iterable[Program], processes: int) -> Iterator[Compiler]:
    """Yield a compiler that compiles each text once; other processes start with these programs, in this order.

    compiler: must be picklable, like the programs; processes: 0 for none. What failed elsewhere is compiled here on
    request, so that its error is raised as usual; so is any other text.
    """
    texts = {program.digest: program for program in programs}
    if not (processes and texts):
        yield _compile_once(compiler, {})
        return
    with pool(min(processes, len(texts))) as workers:
        yield _compile_once(compiler, {text: workers.submit(compiler, program) for text, program in texts.items()})
        workers.shutdown(cancel_futures=True)


def _compile_once(compiler: Compiler, begun: Mapping[str, Future[Binary]]) -> Compiler:
    binaries: dict[str, Binary] = {}

    def compiled(program: Program) -> Binary:
        text = program.digest
        if text not in binaries:
            future = begun.get(text)
            failed = future is None or future.exception()
            binaries[text] = compiler(program) if failed or future is None else future.result()
        return binaries[text]

    return compiled
