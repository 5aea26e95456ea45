"""Certificates for the practice site's TLS, good and broken, made on the spot."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE: Final = timedelta(days=30)


class Flaw(StrEnum):
    """What is wrong with a certificate."""

    NONE = "none"
    EXPIRED = "expired"
    WRONG_HOST = "wrong_host"
    SELF_SIGNED = "self_signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A server's TLS context, the file of the authority to trust for it, and the certificate's end in unix seconds."""

    context: ssl.SSLContext
    ca_file: Path
    not_after: float


def identity(flaw: Flaw, folder: Path, *, now: datetime) -> Identity:
    """A new identity for localhost and 127.0.0.1 with this flaw; its files are written to `folder`.

    `ca_file` names the authority that signed it. With SELF_SIGNED it is an authority that did not.
    """
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("Practice Authority")
    ca = _certificate(
        subject=ca_name, issuer=ca_name, key=ca_key.public_key(), signer=ca_key, end=now + _LIFE, names=None
    )
    end = now - timedelta(days=1) if flaw is Flaw.EXPIRED else now + _LIFE
    host = "elsewhere.invalid" if flaw is Flaw.WRONG_HOST else "localhost"
    own = flaw is Flaw.SELF_SIGNED
    leaf = _certificate(
        subject=_name(host),
        issuer=_name(host) if own else ca_name,
        key=key.public_key(),
        signer=key if own else ca_key,
        end=end,
        names=host,
    )
    ca_file, chain = folder / f"authority-{flaw}.pem", folder / f"server-{flaw}.pem"
    ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return Identity(context=context, ca_file=ca_file, not_after=leaf.not_valid_after_utc.timestamp())


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    end: datetime,
    names: str | None,
) -> x509.Certificate:
    """One signed certificate that ends at `end`; an authority's own one where `names` is None."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(end.astimezone(UTC) - 2 * _LIFE)
        .not_valid_after(end.astimezone(UTC))
        .add_extension(x509.BasicConstraints(ca=names is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if names is not None:
        alternatives: list[x509.GeneralName] = [x509.DNSName(names)]
        if names == "localhost":
            alternatives.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(signer, hashes.SHA256())
