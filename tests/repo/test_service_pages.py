"""The pages about the service: they run, and name every key and every address."""

import re
import tomllib

import pytest
from repository import ROOT, blocks
from test_readme import run_block

from secant.errors import UsageError
from secant.service.http.openapi import OPERATIONS
from secant.service.settings import Settings, load_settings

HOW_TO = ROOT / "docs" / "how-to" / "serve-a-team.md"
API = ROOT / "docs" / "reference" / "http-api.md"
CONFIGURATION = ROOT / "docs" / "reference" / "service-configuration.md"


def test_every_block_of_the_how_to_runs(tmp_path):
    pytest.importorskip("uvicorn", reason="the environment is older than the lock file")
    found = [b for b in blocks(HOW_TO) if b.language in ("sh", "python")]
    assert [b.language for b in found] == ["sh", "python", "python"]
    for block in found:
        run_block(block, tmp_path)
    assert (tmp_path / "backup" / "policy.ledger.service").stat().st_size > 0


def test_the_page_of_the_api_names_every_address_and_no_other():
    written = re.findall(r"^\| (GET|POST|DELETE) (\S+) \|", API.read_text(), re.MULTILINE)
    assert written == [(method, address) for address, method, *_ in OPERATIONS]


def test_the_page_of_the_configuration_names_every_key_with_its_default():
    (block,) = blocks(CONFIGURATION)
    written = tomllib.loads(block.text)
    defaults = Settings().model_dump(mode="json")
    for name, value in defaults.items():
        if not isinstance(value, dict):
            assert name in written
            assert value is None or written[name] == value
            continue
        for key, default in value.items():
            assert (key in written[name]) or (name, key) == ("postgres", "port")
            assert default is None or written[name][key] == default
    written["tls"].pop("certificate"), written["tls"].pop("key")
    assert Settings.model_validate(written).http.port == 8443


def test_the_configuration_of_the_how_to_is_read(tmp_path):
    (block,) = [b for b in blocks(HOW_TO) if b.language == "toml" and "serve.toml" in b.text]
    (tmp_path / "serve.toml").write_text(block.text)
    settings = load_settings(tmp_path / "serve.toml", {"SECANT_SERVE_HTTP__PORT": "9000"})
    assert settings.http.port == 9000
    assert settings.http.origin == "https://secant.example"
    assert load_settings(tmp_path / "serve.toml", {}, {"http.port": 1}).http.port == 1


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("polcy = 'x'", {}),
        ("http = 1", {}),
        ("[http]\nport = 99999", {}),
        ("[http]\nport = 'x'", {}),
        ("[reuse]\namong = 'nobody'", {}),
        ("[questions]\nworkers = 0", {}),
        ("= ", {}),
        ("", {"SECANT_SERVE_HTTP__PROT": "1"}),
        ("policy = 'x'", {"SECANT_SERVE_POLICY__X": "1"}),
    ],
)
def test_mistakes_of_a_configuration_are_told(tmp_path, text, environment):
    (tmp_path / "serve.toml").write_text(text)
    with pytest.raises(UsageError):
        load_settings(tmp_path / "serve.toml", environment)


def test_relative_paths_start_at_the_folder_of_the_configuration(tmp_path):
    (tmp_path / "serve.toml").write_text(
        'policy = "p.toml"\nanchor = "a"\n[tls]\ncertificate = "c"\nkey = "/k"'
    )
    settings = load_settings(tmp_path / "serve.toml", {})
    assert settings.policy == tmp_path / "p.toml"
    assert settings.anchor == tmp_path / "a"
    assert settings.tls.certificate == tmp_path / "c"
    assert str(settings.tls.key) == "/k"
