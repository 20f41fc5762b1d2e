"""An authority and a broker's certificate, made by openssl for one test run."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make(folder: Path) -> dict[str, str]:
    """The broker's settings for TLS, but for its ports; the trusted file is the authority."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-days", "2", "-subj", "/CN=tests")  # fmt: skip
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "broker.raw", "-out", "broker.csr",
            "-subj", "/CN=localhost")  # fmt: skip
    openssl("x509", "-req", "-in", "broker.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "broker.pem", "-days", "2", "-extfile", "names")  # fmt: skip
    openssl("pkcs8", "-topk8", "-nocrypt", "-in", "broker.raw", "-out", "broker.key")
    return {
        "tlsCertificateFilePath": str(folder / "broker.pem"),
        "tlsKeyFilePath": str(folder / "broker.key"),
        "tlsTrustCertsFilePath": str(folder / "ca.pem"),
    }
