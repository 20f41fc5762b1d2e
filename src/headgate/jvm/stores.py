"""What Spark needs to reach a home in an object store: jars, and settings of the bucket."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate.base.aws_keys import aws_keys
from headgate.base.errors import UsageError
from headgate.base.store_url import StoreUrl
from headgate.jvm.gateway import PACKAGE, java_view, kernel_api
from headgate.jvm.more_jars import need_jars

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
# Of these the first that has keys: settings of Spark, the environment, files, then the machine.
_AWS_KEYS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)
_OTHERS = {
    "gs": ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem", "Google's gcs-connector"),
    "az": ("org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem", "hadoop-azure of Hadoop 3.5.0"),
}


def need_store(spark: SparkSession, url: str) -> None:
    """Let driver and executors of a session reach what is at a URL; a folder needs nothing.

    What the user has set for a bucket (``spark.hadoop.fs.s3a.bucket.NAME.…``) stays as it is.
    """
    store = StoreUrl.parse(url)
    if store is None:
        return
    if store.kind == "s3":
        need_jars(spark, _S3A, "hadoop-aws-3.5.0.lock")
        _set(spark, store)
        return
    class_name, name = _OTHERS[store.kind]
    try:
        java_view(spark).java.lang.Class.forName(class_name)
    except Exception as error:
        raise UsageError(
            f"Spark has no file system for homes on {store.kind}",
            remedy=f"name the jar of {name} in spark.jars or with --packages",
        ) from error


def try_store(spark: SparkSession, file: str) -> str | None:
    """Let Spark write a new file, twice, and delete it; what is wrong with the store's answers."""
    found = kernel_api(spark, "HomeApi").attempt(spark._jsparkSession, file)
    return None if found is None else str(found)


def _set(spark: SparkSession, store: StoreUrl) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    if hadoop.get("fs.s3a.impl") in (None, _S3A):
        hadoop.set("fs.s3a.impl", f"{PACKAGE}.commit.StreamedS3A")
    known = hadoop.get(f"fs.s3a.bucket.{store.bucket}.endpoint")
    if store.endpoint is not None and known not in (None, store.endpoint):
        raise UsageError(
            f"a Spark session reaches a bucket at one endpoint only: {store.bucket} is at {known}",
            got=store.endpoint,
            remedy="use the same endpoint, or a new process",
        )
    for name, value in s3a_settings(store).items():
        key = f"fs.s3a.bucket.{store.bucket}.{name}"
        if hadoop.get(key) is None:
            hadoop.set(key, value)


def s3a_settings(store: StoreUrl) -> dict[str, str]:
    """Hadoop's settings for one bucket, by what follows ``fs.s3a.bucket.NAME.``.

    >>> found = s3a_settings(StoreUrl.parse("s3://data/home?endpoint=http://127.0.0.1:9000"))
    >>> found["endpoint"], found["path.style.access"]
    ('http://127.0.0.1:9000', 'true')
    """
    settings = {
        "endpoint.region": store.region,
        "path.style.access": str(store.path_style).lower(),
        # no folders: neither looked for before a write nor marked by empty objects after a delete
        "performance.flags": "create,delete,mkdir",
        "create.conditional.enabled": "true",
        "aws.credentials.provider": ",".join(_AWS_KEYS),
        # job.json is rewritten every few seconds: whoever reads it reads it again
        "change.detection.mode": "server",
        # the default of Hadoop 3.5 does not tell such a change from other failures
        "input.stream.type": "classic",
    }
    if store.endpoint is not None:
        settings["endpoint"] = store.endpoint
    if (keys := aws_keys(store)) is not None:  # a JVM that runs already has another environment
        settings |= {"access.key": keys.id, "secret.key": keys.secret}
        if keys.token:
            settings["session.token"] = keys.token
    return settings
