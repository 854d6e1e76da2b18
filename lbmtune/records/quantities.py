"""Types of quantities with the values that a record may hold, which is checked when it is read.

What follows from them then is finite: no file makes a report divide by zero or leave the range of numbers.
"""

from typing import Annotated

from msgspec import Meta

Number = Annotated[float, Meta(ge=-1e30, le=1e30)]
Positive = Annotated[float, Meta(ge=1e-30, le=1e30)]
NotNegative = Annotated[float, Meta(ge=0.0, le=1e30)]
LogRatio = Annotated[float, Meta(ge=-20.0, le=20.0)]
Count = Annotated[int, Meta(ge=0, le=10**18)]
OneOrMore = Annotated[int, Meta(ge=1, le=10**18)]
