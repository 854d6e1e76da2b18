"""Check that a text is refused once a part of it is wrong."""

from collections.abc import Callable

import pytest

from lbmtune.errors import InputError


def refused(read: Callable[[str], object], text: str, right: str, wrong: str) -> str:
    """Return the sentence by which `read` refuses a text in which something wrong replaces what is right."""
    assert right in text
    with pytest.raises(InputError) as error:
        read(text.replace(right, wrong, 1))
    return str(error.value)
