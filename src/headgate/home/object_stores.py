"""Clients of object stores: obstore's, made from an address and the credentials of the machine."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Any

from headgate.base.aws_keys import aws_keys
from headgate.base.errors import UsageError
from headgate.base.store_url import StoreUrl

_EXTRAS = {"s3": "s3", "gs": "gcs", "az": "azure"}
# A store that does not answer is said so in half a minute; the driver then waits and tries again.
_CLIENT = {"timeout": "20s", "connect_timeout": "5s"}
_RETRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=25)}


@lru_cache(maxsize=32)
def open_bucket(url: StoreUrl) -> Any:
    """The obstore client of a whole bucket; one a bucket, as it keeps its connections."""
    try:
        from obstore import store as stores
    except ImportError as error:
        extra = _EXTRAS[url.kind]
        raise UsageError(
            f"a home at {url.address()} needs the package obstore",
            remedy=f"pip install 'headgate[{extra}]'",
        ) from error
    common: dict[str, Any] = {
        "client_options": {**_CLIENT, "allow_http": str(url.endpoint).startswith("http:")},
        "retry_config": _RETRIES,
    }
    if url.endpoint is not None:
        common["endpoint"] = url.endpoint
    if url.kind == "s3":
        return stores.S3Store(
            url.bucket,
            region=url.region,
            virtual_hosted_style_request=not url.path_style,
            **common,
            **_aws_credentials(url),
        )
    if url.kind == "gs":
        common.pop("endpoint", None)
        return stores.GCSStore(url.bucket, **common)
    return stores.AzureStore(url.bucket, account_name=url.account, **common)


def _aws_credentials(url: StoreUrl) -> dict[str, Any]:
    """The keys that Spark gets, too; without any the client asks the machine.

    A profile that has no keys of its own (single sign-on, roles) needs boto3, which knows them all.
    """
    keys = aws_keys(url)
    if keys is not None:
        found = {"access_key_id": keys.id, "secret_access_key": keys.secret}
        return found | ({"session_token": keys.token} if keys.token else {})
    profile = url.option("profile", "AWS_PROFILE")
    if profile is None:
        return {}
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        raise UsageError(
            f"the AWS profile '{profile}' has no keys in the shared credentials file",
            remedy="pip install boto3, which knows single sign-on and roles, or set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ) from error
    return {"credential_provider": Boto3CredentialProvider(boto3.Session(profile_name=profile))}
