"""TLS: a certificate from files, or one that is made for a first try.

In: settings. Out: a server's context, for every front. A self-made certificate proves nothing to anybody who has not
compared its fingerprint; it is made once, beside the ledger, and kept.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from secant.errors import UsageError
from secant.service.settings import Settings

DAYS = 90


def tls_files(settings: Settings, beside: Path) -> tuple[Path, Path] | None:
    """Give certificate and key; made in the folder `beside` if that was asked for; None without TLS."""
    tls = settings.tls
    if tls.certificate is not None or tls.key is not None:
        if tls.certificate is None or tls.key is None or tls.self_made:
            raise UsageError(
                "USE-001", "[tls] names certificate and key both, or says self_made = true alone"
            )
        return tls.certificate, tls.key
    if not tls.self_made:
        return None
    certificate, key = beside / "secant-self-made.pem", beside / "secant-self-made.key"
    if not (certificate.exists() and key.exists()) or _is_over(certificate):
        _make(certificate, key, ["localhost", "127.0.0.1", "::1", settings.http.host])
    return certificate, key


def server_context(files: tuple[Path, Path]) -> ssl.SSLContext:
    """Give the context of a server that speaks TLS 1.2 and later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(*files)
    except (OSError, ssl.SSLError):
        raise UsageError(
            "USE-001",
            "certificate or key cannot be read, or do not belong together",
            hint="check [tls]",
        ) from None
    return context


def fingerprint(certificate: Path) -> str:
    """Give the SHA-256 fingerprint of a certificate, for people to compare."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
    return ":".join(f"{byte:02X}" for byte in parsed.fingerprint(hashes.SHA256()))


def _is_over(certificate: Path) -> bool:
    from cryptography import x509

    parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
    return bool(parsed.not_valid_after_utc < datetime.now(UTC) + timedelta(days=1))


def _make(certificate: Path, key: Path, names: list[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "secant, self-made")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName(_names(x509, names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    key_bytes = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    key.unlink(missing_ok=True)
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key_bytes)
    certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))


def _names(x509: object, names: list[str]) -> list[object]:
    entries: list[object] = []
    for name in dict.fromkeys(names):
        try:
            entries.append(x509.IPAddress(ipaddress.ip_address(name)))  # type: ignore[attr-defined]
        except ValueError:
            entries.append(x509.DNSName(name))  # type: ignore[attr-defined]
    return entries
