"""Evidence packs: what is in them, and that nothing can be changed, added or hidden without being seen."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.cli import main
from dit_dask.reporting.evidence import CHECKSUMS, checksums
from tests.reporting.runs import finished_run

Files = dict[str, bytes]


def write_key(path: Path) -> Path:
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = path.with_suffix(".pub")
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return public


@pytest.fixture(scope="module")
def signed(hostile_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A signed pack, and the public key."""
    folder = tmp_path_factory.mktemp("pack")
    public = write_key(folder / "key.pem")
    assert main(["report", str(hostile_run), "--pack", str(folder / "e.zip"), "--key", str(folder / "key.pem")]) == 0
    return folder / "e.zip", public


def read(pack: Path) -> Files:
    with zipfile.ZipFile(pack) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path: Path, files: Files) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in files.items():
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return path


def test_a_pack_has_what_an_assessor_asks_for(signed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    pack, public = signed
    files = read(pack)
    names = {"report.html", "report.pdf", "statement.html", "statement.pdf", "verdict.json", "summary.json", "config.json"}
    assert names | {"measures.json", "environment.json", "SHA256SUMS", "SHA256SUMS.sig", "public-key.pem"} == set(files)
    assert files["report.pdf"].startswith(b"%PDF-")
    text = files["statement.html"].decode()
    for heading in (
        "clause 6: Context assessment",
        "clause 7: Data assessment",
        "clause 8: Identifiability assessment and mitigation",
        "clause 9: De-identification governance",
        "Anonymisation methodology",
        "Variables and anonymisation techniques",
        "Initial risk",
        "Threshold",
        "Residual risk",
        "To be completed",
    ):
        assert heading in text
    assert main(["verify", str(pack), "--key", str(public)]) == 0
    assert "signed by the given key" in capsys.readouterr().out


def test_the_same_run_gives_the_same_bytes(hostile_run: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        assert main(["report", str(hostile_run), "--pack", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert main(["verify", str(tmp_path / "a.zip")]) == 0


CHANGES: dict[str, Callable[[Files], Files]] = {
    "verdict.json was changed": lambda files: files | {"verdict.json": files["verdict.json"].replace(b"failed", b"passed")},
    "summary.json is missing": lambda files: {name: content for name, content in files.items() if name != "summary.json"},
    "more.txt was added": lambda files: files | {"more.txt": b"hello"},
    "SHA256SUMS is missing": lambda files: {name: content for name, content in files.items() if name != CHECKSUMS},
    "is none that a pack has": lambda files: files | {"../evil.txt": b"hello"},
    "SHA256SUMS is not a list": lambda files: files | {CHECKSUMS: b"nonsense"},
}


@pytest.mark.parametrize("problem", CHANGES)
def test_what_was_done_to_a_pack_is_named(
    problem: str, signed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = write(tmp_path / "e.zip", CHANGES[problem](read(signed[0])))
    assert main(["verify", str(pack)]) == 1
    assert problem in capsys.readouterr().out


def test_new_checksums_do_not_help_without_the_key(signed: tuple[Path, Path], tmp_path: Path) -> None:
    files = read(signed[0])
    changed = files | {"verdict.json": files["verdict.json"].replace(b"failed", b"passed")}
    plain = {name: content for name, content in changed.items() if name not in (CHECKSUMS, "SHA256SUMS.sig", "public-key.pem")}
    forged = changed | {CHECKSUMS: checksums(plain)}
    assert main(["verify", str(write(tmp_path / "forged.zip", forged))]) == 1
    unsigned = plain | {CHECKSUMS: checksums(plain)}
    assert main(["verify", str(write(tmp_path / "unsigned.zip", unsigned))]) == 0
    assert main(["verify", str(tmp_path / "unsigned.zip"), "--key", str(signed[1])]) == 1
    other = write_key(tmp_path / "other.pem")
    assert main(["verify", str(signed[0]), "--key", str(other)]) == 1


def test_zip_tricks_are_refused(signed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, files = signed[0].read_bytes(), read(signed[0])
    twice = tmp_path / "twice.zip"
    with zipfile.ZipFile(write(twice, files), "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr(zipfile.ZipInfo("verdict.json"), b"{}")
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(3):
            file.writestr(f"zeros{number}", b"\0" * 80_000_000)
    cases = {"twice.zip": "is there twice", "bomb.zip": "larger than"}
    for name, data in {"before.zip": b"MZ" + content, "after.zip": content + b"more"}.items():
        (tmp_path / name).write_bytes(data)
        cases[name] = "its files need"
    for name, problem in cases.items():
        assert main(["verify", str(tmp_path / name)]) == 1, name
        assert problem in capsys.readouterr().out


@given(place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_no_bit_of_a_pack_can_flip_and_still_pass_as_signed(signed: tuple[Path, Path], place: int, bit: int) -> None:
    content = bytearray(signed[0].read_bytes())
    content[place % len(content)] ^= 1 << bit
    flipped = signed[0].with_name("flipped.zip")
    flipped.write_bytes(content)
    code = main(["verify", str(flipped), "--key", str(signed[1])])
    try:  # some bits of a zip file mean nothing, such as dates: then all files must be the same
        same = code == 0 and read(flipped) == read(signed[0])
    except (zipfile.BadZipFile, NotImplementedError):
        same = False
    assert code in (1, 2) or same


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "no-such.zip"], "cannot read no-such.zip"),
        (["verify", "text.zip"], "is not a pack that can be read"),
        (["report", "RUN", "--key", "key.pem"], "give --pack"),
        (["report", "RUN", "--pack", "e.zip", "--key", "no-such.pem"], "cannot read no-such.pem"),
        (["report", "RUN", "--pack", "e.zip", "--key", "text.zip"], "must be an Ed25519 private key"),
        (["report", "RUN", "--pack", "e.zip", "--key", "other.pem"], "got another kind"),
        (["report", "RUN", "--pack", "no/such/folder/e.zip"], "cannot write"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: list[str],
    message: str,
    hostile_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.zip").write_text("no zip")
    key = ec.generate_private_key(ec.SECP256R1())
    Path("other.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert main([str(hostile_run) if one == "RUN" else one for one in arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"text.zip", "other.pem"}


def test_figures_of_few_rows_are_not_packed(tmp_path: Path) -> None:
    run = finished_run(tmp_path, tests=[{"sanitizer": {"name": "mondrian", "k": 5}, "records": [7]}], gates=[], controls=False)
    delta = json.loads((run / "summary.json").read_text())[0]["delta"]
    assert main(["report", str(run), "--pack", str(tmp_path / "e.zip")]) == 0
    files = read(tmp_path / "e.zip")
    (summary,) = json.loads(files["summary.json"])
    assert (summary["withheld"], summary["delta"]) == (True, None)
    assert delta is not None
    for name in ("report.html", "statement.html"):
        assert not re.search(rf">{delta:.4g}<", files[name].decode())


def test_a_profile_sets_gates_and_says_where_they_come_from(tmp_path: Path) -> None:
    run = finished_run(tmp_path, profile="ema-0.09", gates=["claims hold"])
    verdict = json.loads((run / "verdict.json").read_text())
    found = [one["status"] for one in verdict["verdicts"] if one["gate"] == "smallest_class >= 11"]
    assert found == ["failed", "failed", "passed"]  # k = 2, 5, 20
    assert {one["gate"] for one in verdict["verdicts"]} == {"smallest_class >= 11", "claims hold"}
    assert len(verdict["verdicts"]) == 6  # what the config asks for, too, is judged once
    assert "policy 0070" in (run / "report.html").read_text("utf-8")


def test_no_profile_is_the_default(hostile_run: Path) -> None:
    assert "profile" not in json.loads((hostile_run / "manifest.json").read_text())["config"]


def test_the_pack_opens_as_a_zip_of_plain_files(signed: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(io.BytesIO(signed[0].read_bytes())) as file:
        assert file.testzip() is None
        assert all("/" not in name for name in file.namelist())
