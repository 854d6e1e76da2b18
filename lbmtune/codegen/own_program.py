"""Programs of users' kernels: their text as it is, with macros that the compiler defines."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from lbmtune.catalogue.own_kernel.config import OwnConfig, bytes_of, family_of
from lbmtune.catalogue.own_kernel.definition import OwnKernel, filled
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Extent, Launch, Program


@dataclass(frozen=True)
class OwnProgram(Program):
    """A user's kernel. Its launch takes the arguments of the description, which `runtime.own_kernel` binds."""

    @property
    def own(self) -> OwnConfig:
        """Return the configuration."""
        found: Any = self.config
        return found  # type: ignore[no-any-return]

    @property
    def kernel(self) -> OwnKernel:
        """Return the description."""
        return self.own.kernel

    @property
    def launch(self) -> Launch:
        """Return the launch of a step, that of an even one if they take turns."""
        return self.period[0][0]

    @property
    def expressions(self) -> tuple[str, ...]:
        """Return the entry, which may be a function of C++, or one of a template: 'step<32>'."""
        return () if self.in_c else self.entries

    @property
    def has_sync(self) -> bool:
        """Return True: threads of an unknown text may synchronise."""
        return True

    @property
    def digest(self) -> str:
        """Return the SHA-256 of text, entry and options."""
        told = (self.target, *self.entries, *self.options, self.source)
        return hashlib.sha256("\0".join(told).encode()).hexdigest()

    def buffers(self) -> tuple[str, ...]:
        """Return the names of the buffers."""
        return tuple(one.name for one in self.kernel.buffers)

    def sizes(self, domain: Extent) -> dict[str, int]:
        """Return the elements of each buffer."""
        return self.kernel.sizes(self.own.values, domain)

    def array_bytes(self, domain: Extent) -> list[int]:
        """Return the bytes of each buffer."""
        sizes = self.sizes(domain)
        return [sizes[one.name] * bytes_of(one.type) for one in self.kernel.buffers]

    def grid(self, launch: Launch, domain: Extent) -> Extent:  # noqa: ARG002
        """Return the blocks of a launch for a domain."""
        blocks = getattr(self.own, "blocks", None)
        found: Extent = blocks(replace(self.case, domain=domain)) if blocks else (1, 1, 1)
        return found


def options_of(config: OwnConfig, case: Case) -> tuple[str, ...]:
    """Return the options of the description, and a definition of each macro."""
    values = config.values
    defined = config.kernel.defines(values, case.domain)
    return (
        *(filled(option, values) for option in config.kernel.options),
        *(f"-D{name}={value}" for name, value in defined.items()),
    )


def reference_program(program: OwnProgram) -> OwnProgram:
    """Return the program that one is compared with: the other entry with the same macros, or its own with defaults."""
    from lbmtune.codegen.render import render  # here: it finds the modules of families

    kernel = program.kernel
    if entry := filled(kernel.reference.entry, program.own.values):
        return replace(program, period=((replace(program.launch, entry=entry),),))
    found: Any = render(program.case, family_of(kernel).parse({}))
    return found  # type: ignore[no-any-return]
