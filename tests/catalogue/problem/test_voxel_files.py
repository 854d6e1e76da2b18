"""Voxel files as other programs write them, and files that are damaged, missing or no files at all."""

from __future__ import annotations

import base64
import io
import lzma
import os
import zipfile
import zlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from lbmtune.catalogue.problem.geometries import voxelfile
from lbmtune.catalogue.problem.geometries.vti import read_vti
from lbmtune.catalogue.problem.geometry import generator, identified, moved, voxels, without_path
from lbmtune.catalogue.problem.parameter_text import GeometryError, split, written
from lbmtune.errors import InputError
from lbmtune.files.casefile import CaseFile, case_of

SAMPLE = np.arange(24).reshape(4, 3, 2) % 5 == 0
FORM = "file:path=sample.npy"
ROOM = 1 << 20
INTEGERS = {"Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4", "UInt32": "u4", "Int64": "i8",
            "UInt64": "u8"}  # fmt: skip
TYPES = {**INTEGERS, "Float32": "f4", "Float64": "f8"}

BY_VTK = (
    b"""<VTKFile type="ImageData" version="1.0" byte_order="BigEndian" header_type="UInt64"
 compressor="vtkZLibDataCompressor">
  <ImageData WholeExtent="0 2 0 3 0 4" Origin="0 0 0" Spacing="1 1 1" Direction="1 0 0 0 1 0 0 0 1">
    <Piece Extent="0 2 0 3 0 4"      ><PointData></PointData>
      <CellData Scalars="solid">
        <DataArray type="Float32" Name="density" format="appended" RangeMin="1"   RangeMax="1"  offset="0"   />
        <DataArray type="Int16" Name="solid" format="appended" RangeMin="0"       RangeMax="1"  offset="47"  />
      </CellData></Piece></ImageData>
  <AppendedData encoding="raw">
   """
    b"_\0\0\0\0\0\0\0\1\0\0\0\0\0\0\x80\0\0\0\0\0\0\0\0`\0\0\0\0\0\0\0\x0fx^\xb3o``\xb0\xa7!\6\0s\xdd\x11\xe9"
    b"\0\0\0\0\0\0\0\1\0\0\0\0\0\0\x80\0\0\0\0\0\0\0\0000\0\0\0\0\0\0\0\x0ex^c`d\x80\1\xa2X\0\0\xb7\0\6\n"
    b"  </AppendedData>\n</VTKFile>\n"
)
"""What VTK 9 writes with big-endian words of 64 bits, appended, compressed; the active array is the second one."""


def test_what_vtk_wrote_with_the_active_array_not_the_first() -> None:
    assert (read_vti(BY_VTK, "", ROOM) == SAMPLE).all()
    assert (read_vti(BY_VTK, "density", ROOM) == 1).all()


def made_vti(
    values: np.ndarray,
    kind: str,
    place: str,
    packed: str = "",
    order: str = "<",
    header: str = "UInt32",
    block: int = 16,
) -> bytes:
    """Return a file of cell values. place: 'ascii', 'binary', 'raw' or 'base64'; block: bytes of compressed blocks."""
    data, word = values.astype(order + TYPES[kind]).tobytes(), order + TYPES[header]
    head, body = np.array([len(data)], word).tobytes(), data
    if packed:
        pack = {"ZLib": zlib.compress, "LZMA": lzma.compress, "LZ4": zlib.compress}[packed]
        blocks = [pack(data[n : n + block]) for n in range(0, len(data), block)]
        sizes = [len(blocks), block, len(data) % block, *map(len, blocks)]
        head, body = np.array(sizes, word).tobytes(), b"".join(blocks)
    coded = b"".join(map(base64.b64encode, (head, body))) if packed else base64.b64encode(head + body)
    where = {"ascii": "ascii", "binary": "binary"}.get(place, "appended")
    text = {"ascii": " ".join(map(str, values.ravel())).encode(), "binary": b"\n  " + coded + b"\n"}.get(place, b"")
    root = f'<VTKFile type="ImageData" byte_order="{"Big" if order == ">" else "Little"}Endian" header_type="{header}"'
    root += f' compressor="vtk{packed}DataCompressor">' if packed else ">"
    x, y, z = values.shape[::-1]
    root += f'<ImageData WholeExtent="0 {x} 0 {y} 0 {z}"><Piece Extent="0 {x} 0 {y} 0 {z}"><CellData>'
    root += f'<DataArray type="{kind}" Name="solid" format="{where}" offset="0">'
    end = b"</DataArray></CellData></Piece></ImageData>"
    if where == "appended":
        end += f'<AppendedData encoding="{place}">\n _'.encode() + (coded if place == "base64" else head + body)
        end += b"\n</AppendedData>"
    return root.encode() + text + end + b"</VTKFile>"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("place", ["ascii", "binary", "raw", "base64"])
def test_every_form_of_vti(place: str, kind: str) -> None:
    values = np.arange(24).reshape(4, 3, 2) % 7
    for packed, order, header in product(("", "ZLib", "LZMA"), "<>", ("UInt32", "UInt64")):
        found = read_vti(made_vti(values, kind, place, packed, order, header), "", ROOM)
        assert found.shape == values.shape
        assert found.dtype == np.dtype(order + TYPES[kind]), (packed, order, header)
        assert (found == values).all(), (packed, order, header)


def test_values_at_points_have_as_many_cells() -> None:
    text = made_vti(SAMPLE.astype(int), "UInt8", "ascii").replace(b"CellData", b"PointData")
    text = text.replace(b"0 2 0 3 0 4", b"0 1 0 2 0 3")
    assert (read_vti(text, "", ROOM) == SAMPLE).all()


ARRAYS = """<VTKFile><ImageData WholeExtent="0 2 0 1 0 1"><Piece><PointData><DataArray Name="points" type="UInt8"
format="ascii">0 0 0 0 0 0 0 0 0 0 0 0</DataArray></PointData><CellData {0}><DataArray Name="velocity"
NumberOfComponents="3"
type="Float32" format="ascii">0 0 0 0 0 0</DataArray><DataArray Name="rock" type="UInt8" format="ascii">0 1</DataArray>
</CellData></Piece></ImageData></VTKFile>"""


def test_the_array_is_chosen_by_name_or_active() -> None:
    for attribute, name in (("", "rock"), ('Scalars="rock"', ""), ('Scalars="velocity"', "rock")):
        assert read_vti(ARRAYS.format(attribute).encode(), name, ROOM).ravel().tolist() == [0, 1]
    assert read_vti(ARRAYS.format("").encode(), "points", ROOM).shape == (2, 2, 3)


@pytest.mark.parametrize(
    ("attribute", "name", "said"),
    [
        ("", "", "it holds the arrays velocity, rock, points and none is active; name one with :array=NAME"),
        ("", "stone", "it holds no array 'stone' (of velocity, rock, points)"),
        ('Scalars="velocity"', "", "the array velocity has 3 components (of velocity, rock, points)"),
        ("", "velocity", "the array velocity has 3 components"),
    ],
)
def test_an_array_that_is_not_one_value_for_every_cell_is_named(attribute: str, name: str, said: str) -> None:
    with pytest.raises(ValueError, match="array") as raised:
        read_vti(ARRAYS.format(attribute).encode(), name, ROOM)
    assert str(raised.value).startswith(said)


def of(content: bytes, name: str, folder: Path) -> str:
    """Return the geometry of a file with some content. name: of the file, and parameters after it."""
    (folder / name.partition(":")[0]).write_bytes(content)
    return f"file:path={folder / name}"


def npy(shape: str, kind: str = "'|u1'", size: int = 512) -> bytes:
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(size)


def packed() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("a.npy", b"x")
    return archive.getvalue()


VTI = made_vti(SAMPLE.astype(int), "UInt8", "ascii")
ZLIB = made_vti(SAMPLE.astype(int), "UInt8", "raw", "ZLib")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.npy", packed(), "it is not an array of numbers"),
        ("b.npy", b"PK\x03\x04" + b"x" * 50, "it is damaged (BadZipFile)"),
        ("c.npy", npy("(1099511627776, 1, 1)"), ""),
        ("d.npy", npy("(99999999999999999999, 1)"), ""),
        ("e.npy", npy("(True, 8, 8)"), ""),
        ("f.npy", npy("(8, 8, 8)").replace(b"}", b" ", 1), ""),
        ("g.npy", npy("(0, 8, 8)"), "its shape is (0, 8, 8) where two or three axes with cells are expected"),
        ("h.npy", npy("(8, 8)", "'<U3'", 768), "it is not an array of numbers"),
        ("i.npy", b"", ""),
        ("a.vti", VTI.replace(b">1 0 0 0 0 1", b">300 0 0 0 0 1"), "its values 0 to 300 are not of its type"),
        ("b.vti", VTI.replace(b">1 0 0 0 0 1", b">-1 0 0 0 0 1"), "its values -1 to 1 are not of its type"),
        ("c.vti", b'<?xml version="1.0" encoding="nope"?>' + VTI, "it is damaged (LookupError)"),
        ("d.vti", VTI.replace(b"0 4", b"0 5"), "the array has 24 values and 30 cells"),
        ("e.vti", VTI.replace(b"Int8", b"Int9"), "it is damaged (KeyError)"),
        ("f.vti", b"<VTKFile/>", "it holds no ImageData"),
        ("g.vti", b"<VTKFile><ImageData/></VTKFile>", "it holds no array"),
        ("h.vti", VTI.replace(b"</Piece>", b"</Piece><Piece/>"), "it has several pieces; save it as one"),
        ("i.vti", ZLIB[:-60], ""),
        ("j.vti", ZLIB.replace(b"0 4", b"0 5"), "the array has 24 bytes, its cells 30"),
        ("k.vti", ZLIB.replace(b"0 4", b"0 999999999999"), "more than a quarter of the memory"),
        ("l.vti", made_vti(SAMPLE.astype(int), "UInt8", "raw", "LZ4"), "by vtkLZ4DataCompressor, which is not read"),
        ("m.vti", made_vti(SAMPLE.astype(int), "UInt8", "raw", "LZ4"), "Compressor Type in ParaView); give one value"),
        ("a.raw:shape=2x2", b"123", "3 bytes and shape=2x2"),
        ("b.raw:shape=2xZ", b"123", ""),
        ("c.raw:shape=2x0", b"", "0 bytes and shape=2x0"),
        ("d.raw:shape=2x2:dtype=u2", b"1234", "4 bytes and shape=2x2 and dtype=u2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_files_are_bad_input_with_one_sentence(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    geometry = of(content, name, tmp_path)
    with pytest.raises(GeometryError) as raised:
        voxels(geometry, (2, 2, 2))
    message = str(raised.value)
    assert message.startswith(f"cannot read the voxels of {tmp_path / name.partition(':')[0]}: ")
    assert said in message
    assert "\n" not in message
    assert len(message) < len(str(tmp_path)) + 250


def test_a_few_bytes_that_stand_for_gigabytes_are_not_unpacked(tmp_path: Path) -> None:
    bomb = made_vti(np.zeros((1, 1, 1 << 20), int), "UInt8", "raw", "ZLib", block=1 << 20)
    lying = bomb.replace(np.array([1 << 20, 0], "<u4").tobytes(), np.array([24, 0], "<u4").tobytes())
    lying = lying.replace(b"0 1048576 0 1 0 1", b"0 2 0 3 0 4")
    assert read_vti(lying, "", ROOM).nbytes == 24
    with pytest.raises(ValueError, match="memory"):
        read_vti(bomb, "", ROOM - 1)


def test_objects_in_an_array_are_not_made(tmp_path: Path) -> None:
    """Making them runs what the file says."""
    mark = tmp_path / "ran"

    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(mark),)

    np.save(tmp_path / "a.npy", np.array([Hostile()], object), allow_pickle=True)
    with pytest.raises(GeometryError, match="cannot read the voxels"):
        voxels(f"file:path={tmp_path / 'a.npy'}", (2, 2, 2))
    assert not mark.exists()


@pytest.mark.timeout(20)
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    (tmp_path / "folder.npy").mkdir()
    for name, said in (
        ("pipe.npy", "it is no regular file"),
        ("zero.npy", "it is no regular file"),
        ("folder.npy", "Is a directory"),
        ("a\0b.npy", "embedded null byte"),
        ("none.npy", "No such file or directory; give the path of a voxel file"),
        ("n" * 300 + ".npy", "File name too long"),
        ("~nobody\0/b.npy", "embedded null byte"),
        ("passwd", "no suffix is no voxel file of the kinds .npy, .raw, .vti"),
    ):
        with pytest.raises(GeometryError, match=said):
            identified(f"file:path={name}", tmp_path)
        with pytest.raises(GeometryError):
            voxels(f"file:path={tmp_path / name}", (2, 2, 2))


def test_a_file_larger_than_the_memory_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.npy").open("wb") as file:
        os.truncate(file.fileno(), 1 << 42)
    with pytest.raises(GeometryError, match=r"it has 4 TiB, more than a quarter of the memory; crop it"):
        identified(f"file:path={tmp_path / 'huge.npy'}", Path())


@pytest.mark.parametrize(
    ("name", "kind", "parameter"),
    [
        ("a.RAW", "u1", ""),
        ("a.raw", "u2", ""),
        ("a.Raw", "u4", ""),
        ("a.raw", "<u2", ":dtype=u2"),
        ("a.raw", ">u2", ":dtype=>u2"),
        ("a.raw", "i8", ":dtype=i8"),
        ("a.raw", "f4", ":dtype=f4"),
    ],
)
def test_raw_files_of_other_types(name: str, kind: str, parameter: str, tmp_path: Path) -> None:
    content = (3 * SAMPLE).astype(kind).tobytes()
    geometry = of(content, f"{name}:shape=2x3x4{parameter}", tmp_path)
    assert (generator(geometry).values((4, 3, 2)) == 3 * SAMPLE).all()  # type: ignore[attr-defined]
    assert (voxels(geometry, (2, 3, 4)) == SAMPLE).all()


def case_file(geometry: str, domain: str = "2x3x4") -> CaseFile:
    return CaseFile(flow="porous", lattice="d3q19", domain=domain, relaxation_rate=1.0, geometry=geometry)


def test_a_raw_file_without_a_shape_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(GeometryError, match=r"a.RAW needs its cells along x, y and z; add for example :shape=2x3x4\.$"):
        case_of(case_file(of(bytes(24), "a.RAW", tmp_path)))


def test_upper_case_endings(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", SAMPLE)
    geometry = of((tmp_path / "a.npy").read_bytes(), "A.NPY", tmp_path)
    assert (voxels(geometry, (2, 3, 4)) == SAMPLE).all()
    assert (voxels(of(VTI, "A.VTI", tmp_path), (2, 3, 4)) == SAMPLE).all()


def test_a_sample_may_have_its_solid_as_zero(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", SAMPLE)
    assert (voxels(f"file:path={tmp_path / 'a.npy'}:invert=1", (2, 3, 4)) == ~SAMPLE).all()
    with pytest.raises(GeometryError, match="invert=1 is not supported for cells with a condition"):
        generator(f"file:path={tmp_path / 'a.npy'}:invert=1:fluid=2")
    with pytest.raises(GeometryError, match="unknown dtype 'S4'; choose one of u1, i1"):
        generator(f"file:path={tmp_path / 'a.npy'}:dtype=S4")


def test_a_domain_without_a_fluid_cell_is_refused(tmp_path: Path) -> None:
    values = np.ones((4, 3, 2), np.uint8)
    values[3] = 0
    np.save(tmp_path / "a.npy", values)
    geometry = f"file:path={tmp_path / 'a.npy'}"
    assert case_of(case_file(geometry)).fluid_sites == 6
    with pytest.raises(GeometryError, match=r"leaves no fluid cell in the domain 2x3x3; name another array, or add"):
        case_of(case_file(geometry, "2x3x3"))
    assert case_of(case_file(f"{geometry}:invert=1", "2x3x3")).fluid_sites == 18
    with pytest.raises(GeometryError, match=r"no fluid cell in the domain 2000000000x3x4"):
        case_of(
            case_file(f"{of(np.full(24, 7, 'u1').tobytes(), 'b.raw:shape=2x3x4', tmp_path)}:repeat=1", "2000000000x3x4")
        )
    for generated, small in (("sphere:diameter=4", "64x64x64"), ("blocks:fraction=0.99", "1x1x1")):
        with pytest.raises(GeometryError, match=r"leaves no fluid cell in the domain .*; give smaller bodies"):
            case_of(case_file(generated, small))


@pytest.mark.parametrize(
    "name",
    ["run_10:30:00/c.npy", "crop, v2.npy", "a=b.npy", 'a"b.npy', "a:\"b'.npy", "'q.npy", "Gestein äöü.npy", " x .npy"],
)
def test_every_name_of_a_file_has_a_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    np.save(path, SAMPLE)
    geometry = identified(written("file", {"path": str(path), "repeat": "1"}), Path())
    assert split(geometry, "geometry", FORM)[1]["path"] == str(path)
    assert identified(geometry, Path()) == geometry
    assert (voxels(geometry, (2, 3, 4)) == SAMPLE).all()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('file:path="a:b.npy":repeat=1', "a:b.npy"),
        ("file:path='a:b.npy':repeat=1", "a:b.npy"),
        ('file:path="a""b:.npy":repeat=1', 'a"b:.npy'),
        ("file:path='a''b:.npy':repeat=1", "a'b:.npy"),
        ("file:path=a=b.npy:repeat=1", "a=b.npy"),
        ("file::path=a.npy::repeat=1:", "a.npy"),
    ],
)
def test_quotes_in_a_geometry(text: str, path: str) -> None:
    assert split(text, "geometry", FORM) == ("file", {"path": path, "repeat": "1"})


def test_a_colon_without_quotes_says_how_to_quote() -> None:
    with pytest.raises(
        InputError, match=r"geometry part '30' is not of the form name=value; .*quote a value with a colon"
    ):
        generator("file:path=run_10:30:00/c.npy")


def test_a_path_begins_at_a_folder_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    np.save(tmp_path / "a.npy", SAMPLE)
    digest = voxelfile.digest_of(str(tmp_path / "a.npy"))
    for text, folder in (("a.npy", tmp_path), ("~/a.npy", Path("/")), (str(tmp_path / "a.npy"), Path("/"))):
        assert identified(f"file:path={text}", folder) == f"file:path={tmp_path}/a.npy:digest={digest}"
    with pytest.raises(GeometryError, match=r"cannot read .*/~nobody-here/a.npy: No such file"):
        identified("file:path=~nobody-here/a.npy", tmp_path)


def test_a_file_that_was_moved_is_named_again(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", SAMPLE)
    geometry = identified(f"file:path={tmp_path / 'a.npy'}", Path())
    (tmp_path / "a.npy").rename(tmp_path / "b:.npy")
    with pytest.raises(GeometryError, match=r"No such file or directory; restore it, or name it with --geometry"):
        voxels(geometry, (2, 3, 4))
    again = moved(geometry, tmp_path / "b:.npy")
    assert (voxels(again, (2, 3, 4)) == SAMPLE).all()
    assert without_path(again) == without_path(geometry)
    np.save(tmp_path / "c.npy", ~SAMPLE)
    other = moved(geometry, tmp_path / "c.npy")
    with pytest.raises(GeometryError, match=r"has the digest .*, the case was made with"):
        voxels(other, (2, 3, 4))
    for text in ("sphere", ""):
        with pytest.raises(GeometryError, match=r"geometry=c.npy is not supported for this case \(leave it out\)"):
            moved(text, "c.npy")
    assert without_path("sphere") == "sphere"
    assert without_path("file:path=a.npy") == "file:path=a.npy"
