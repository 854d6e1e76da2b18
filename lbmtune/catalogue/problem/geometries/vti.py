"""VTK ImageData (.vti), as VTK, ParaView, PyVista and PyEVTK write it.

Values of an array are ASCII; or binary, in the element (base64) or appended to the file after `_` (raw or base64):
a header of words, then the bytes or compressed blocks of them. Source: VTK file formats, docs.vtk.org.
"""

import base64
import lzma
import re
import xml.etree.ElementTree as ElementTree
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Element = ElementTree.Element
_TYPES = {"Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4", "UInt32": "u4", "Float32": "f4",
          "Float64": "f8", "Int64": "i8", "UInt64": "u8"}  # fmt: skip
_DECOMPRESSORS: dict[str, Any] = {
    "vtkZLibDataCompressor": zlib.decompressobj,
    "vtkLZMADataCompressor": lzma.LZMADecompressor,
}
_APPENDED = re.compile(rb"<AppendedData([^>]*)>\s*_")
_END_OF_TEXT = b"</AppendedData>"


def read_vti(content: bytes, name: str, most_bytes: int) -> npt.NDArray[Any]:
    """Return the values of an array: [z, y, x]. name: of the array; '': the active one.

    most_bytes: of an array. Raises ValueError with the reason, and what the parsers raise for damaged content.
    """
    found = _APPENDED.search(content)
    # raw bytes are no XML
    root = ElementTree.fromstring(content[: found.start()] + b"</VTKFile>" if found else content)
    file = _File(root, found[1] if found else b"", content[found.end() :] if found else b"")
    image = root.find("ImageData")
    if image is None:
        raise ValueError("it holds no ImageData")
    if len(image.findall("Piece")) > 1:
        raise ValueError("it has several pieces; save it as one")
    array, of_points = _chosen(image, name)
    piece = image.find("Piece")
    extent = (image if piece is None or "Extent" not in piece.attrib else piece).attrib
    bounds = [int(n) for n in (extent.get("Extent") or extent["WholeExtent"]).split()]
    x, y, z = (max(1, high - low + of_points) for low, high in zip(bounds[::2], bounds[1::2], strict=True))
    return file.values(array, x * y * z, most_bytes).reshape(z, y, x)


def _chosen(image: Element, name: str) -> tuple[Element, bool]:
    """Return an array, and if it belongs to points: the named one, the only one or the active one; cells before points.

    Raises ValueError.
    """
    tables = [(table, table.tag == "PointData") for tag in ("CellData", "PointData") for table in image.iter(tag)]
    arrays = {
        (array.get("Name", ""), of_points): array for table, of_points in tables for array in table.iter("DataArray")
    }
    listed = ", ".join(dict.fromkeys(title or "without a name" for title, _ in arrays))
    for table, of_points in tables:
        own = [title for title, points in arrays if points == of_points]
        wanted = name or (own[0] if len(own) == 1 else table.get("Scalars", ""))
        if (wanted, of_points) in arrays:
            return _scalar(arrays[wanted, of_points], listed), of_points
        if own and not name:
            raise ValueError(f"it holds the arrays {listed} and none is active; name one with :array=NAME")
    raise ValueError(f"it holds no array {name!r} (of {listed})" if name and listed else "it holds no array")


def _scalar(array: Element, listed: str) -> Element:
    components = int(array.get("NumberOfComponents", "1"))
    if components != 1:
        title = array.get("Name", "")
        raise ValueError(
            f"the array {title} has {components} components (of {listed}); name another one with :array=NAME"
        )
    return array


@dataclass(frozen=True)
class _File:
    """A file. root: its elements; tag: attributes of the appended data; appended: what follows their mark."""

    root: Element
    tag: bytes
    appended: bytes

    def values(self, array: Element, cells: int, most_bytes: int) -> npt.NDArray[Any]:
        """Return the values of an array. Raises ValueError if they are not one for every cell."""
        kind = np.dtype(self._order + _TYPES[array.attrib["type"]])
        if array.get("format", "ascii") == "ascii":
            found = _of_text(array.text or "", kind)
            if found.size != cells:
                raise ValueError(f"the array has {found.size} values and {cells} cells")
            return found
        size = cells * kind.itemsize
        if size > most_bytes:
            raise ValueError(f"the array has {size} bytes, more than a quarter of the memory")
        return np.frombuffer(self._bytes(self._block(array), size), kind)

    @property
    def _order(self) -> str:
        return ">" if self.root.get("byte_order") == "BigEndian" else "<"

    def _block(self, array: Element) -> bytes:
        """Return the header and the data of an array, and perhaps what follows them."""
        if array.get("format") == "binary":
            return _decoded((array.text or "").encode())
        start = int(array.attrib["offset"])
        if b"base64" not in self.tag:
            return self.appended[start:]
        offsets = [int(one.attrib["offset"]) for one in self.root.iter("DataArray") if "offset" in one.attrib]
        end = min((n for n in offsets if n > start), default=self.appended.find(_END_OF_TEXT))
        return _decoded(self.appended[start:end])

    def _bytes(self, block: bytes, size: int) -> bytes:
        """Return as many bytes of data. Raises ValueError if the block has more or fewer."""
        word = np.dtype(self._order + _TYPES[self.root.get("header_type", "UInt32")])
        compressor = self.root.get("compressor")
        if not compressor:
            announced, data = int(np.frombuffer(block, word, 1)[0]), block[word.itemsize :][:size]
        elif compressor in _DECOMPRESSORS:
            count, full, last = map(int, np.frombuffer(block, word, 3))
            announced = full * (count - bool(last)) + last
            data = b"" if announced != size else self._decompressed(block, word, count, compressor, size)
        else:
            raise ValueError(
                f"it is compressed by {compressor}, which is not read (save it with zlib: "
                "SetCompressorTypeToZLib in VTK, Compressor Type in ParaView)"
            )
        if announced != size or len(data) != size:
            raise ValueError(
                f"the array has {min(announced, len(data)) if data else announced} bytes, its cells {size}"
            )
        return data

    def _decompressed(self, block: bytes, word: np.dtype[Any], count: int, compressor: str, size: int) -> bytes:
        sizes = np.frombuffer(block, word, count, 3 * word.itemsize)
        ends = (3 + count) * word.itemsize + np.cumsum(sizes, dtype=np.int64)
        found = bytearray()
        for end, length in zip(ends.tolist(), sizes.tolist(), strict=True):
            # no more than is due, as a few bytes may stand for gigabytes
            found += _DECOMPRESSORS[compressor]().decompress(block[end - length : end], max(1, size - len(found)))
        return bytes(found)


def _of_text(text: str, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the numbers of a text in a type. Raises ValueError if one is outside it."""
    found = np.fromstring(text, np.float64, sep=" ")
    if kind.kind in "iu" and found.size:
        limits, low, high = np.iinfo(kind), found.min(), found.max()
        if not limits.min <= low <= high <= limits.max:
            raise ValueError(f"its values {low:g} to {high:g} are not of its type")
    return found.astype(kind)


def _decoded(text: bytes) -> bytes:
    """Return the bytes of base64; a header and what follows it are padded each, so that `=` may stand within."""
    return b"".join(map(base64.b64decode, re.findall(rb"[^=]+=*", b"".join(text.split()))))
