"""TLS as a client: one context for all connections, made when the first https address is dialled."""

import ssl
from functools import cache
from pathlib import Path

from hermes.domain.errors import Misconfigured


@cache
def client_context(bundle: Path | None = None) -> ssl.SSLContext:
    """Return the context that trusts the authorities of this system, or those of `bundle`; reading them is dear."""
    try:
        context = ssl.create_default_context(cafile=str(bundle) if bundle else None)
    except OSError as error:
        raise Misconfigured(
            f"the certificates in {str(bundle)!r} cannot be read ({error}); expected a file in PEM form"
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
