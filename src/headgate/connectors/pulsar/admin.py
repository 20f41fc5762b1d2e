"""Pulsar's REST interface: what topics there are, how they are kept, and who has read them."""

from __future__ import annotations

import http.client
import json
import math
import re
import ssl
import urllib.error
import urllib.request
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urljoin

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName, address_of
from headgate.connectors.topic_client import Retention
from headgate.failures import Reason

_ANSWER_SECONDS = 30.0
_REDIRECTS = (301, 302, 307, 308)
_MOST_REDIRECTS = 5
_MEGABYTE = 1024 * 1024
_MINUTE = timedelta(minutes=1)


class PulsarAdminError(HeadgateError):
    """The REST interface did not answer, refused the login, or refused the request.

    >>> from headgate.connectors.topics import open_topic
    >>> try:
    ...     open_topic("pulsar://127.0.0.1:1/visits", {"admin_url": "http://127.0.0.1:1"}).exists()
    ... except hg.PulsarAdminError as error:
    ...     print(error.reason.name, error.status)
    BROKER_UNREACHABLE 0
    """

    code = "PULSAR_ADMIN"

    def __init__(
        self, message: str, *, reason: Reason | None, remedy: str, status: int = 0
    ) -> None:
        super().__init__(message, code=reason.name if reason else None, remedy=remedy)
        self.reason = reason
        """Why; None for a refusal that is none of the usual ones."""
        self.status = status
        """What HTTP said; 0 if there was no answer."""


class PulsarAdmin:
    """Asks and changes what a service knows of its topics.

    Nothing that asks ever makes a topic. A topic that is not there is a NotFoundError.

    >>> admin = PulsarAdmin(PulsarAccess("pulsar://localhost:6650"))
    >>> admin.partitions(PulsarTopicName.parse("orders"))  # doctest: +SKIP
    4
    """

    def __init__(self, access: PulsarAccess, *, timeout: float = _ANSWER_SECONDS) -> None:
        self._access = access
        self._timeout = timeout
        self._opener: urllib.request.OpenerDirector | None = None

    def ready(self) -> bool:
        """Whether the service answers and takes requests; raises if it refuses the login."""
        try:
            self._ask("GET", "brokers/ready", what="the service")
        except PulsarAdminError as error:
            if error.reason is Reason.NOT_AUTHORISED:
                raise
            return False
        except NotFoundError:
            return False
        return True

    def clusters(self) -> list[str]:
        """The names of the clusters that the service knows, its own among them."""
        return self._names("clusters")

    def tenants(self) -> list[str]:
        """The names of all tenants."""
        return self._names("tenants")

    def namespaces(self, tenant: str) -> list[str]:
        """The namespaces of a tenant, as `tenant/namespace`."""
        return self._names(f"namespaces/{quote(tenant, safe='')}")

    def topics(self, beside: PulsarTopicName) -> list[PulsarTopicName]:
        """The topics of a namespace; a partitioned one is there once."""
        space = f"persistent/{quote(beside.tenant, safe='')}/{quote(beside.namespace, safe='')}"
        names = {*self._names(f"{space}/partitioned"), *self._names(space)}
        whole = {re.sub(r"-partition-\d+$", "", name) for name in names}
        return [PulsarTopicName.parse(name) for name in sorted(whole)]

    def partitions(self, topic: PulsarTopicName) -> int | None:
        """How many partitions a topic has; 0 if it is not partitioned, None if it is not there."""
        try:
            found = self._ask("GET", f"{topic.path}/partitions", what=topic)
            count = int(found["partitions"])
            if count == 0:  # older brokers say so of topics that are not there, too
                self._ask("GET", f"{topic.path}/stats", what=topic)
        except NotFoundError:
            return None
        return count

    def create(self, topic: PulsarTopicName, partitions: int) -> bool:
        """Make a partitioned topic; False if a topic of that name was there."""
        try:
            self._ask("PUT", f"{topic.path}/partitions", partitions, what=topic)
        except PulsarAdminError as error:
            if error.status == 409:
                return False
            raise
        except NotFoundError as error:
            raise NotFoundError(
                f"there is no namespace {topic.tenant}/{topic.namespace} at "
                f"{self._access.admin_url}",
                remedy="create it with Pulsar's own tools, or name another",
            ) from error
        return True

    def delete(self, topic: PulsarTopicName) -> None:
        """Delete a topic with all that is in it, whoever uses it."""
        path = f"{topic.path}/partitions" if self._count(topic) else topic.path
        self._ask("DELETE", f"{path}?force=true", what=topic)

    def deduplication(self, topic: PulsarTopicName) -> bool | None:
        """Whether messages that are sent twice are kept once; None if nobody has said.

        What is set for the topic goes before the namespace, and that before the broker.
        """
        found = self._ask("GET", f"{topic.path}/deduplicationEnabled?applied=true", what=topic)
        return None if found is None else bool(found)

    def set_deduplication(self, topic: PulsarTopicName, on: bool) -> None:
        """Switch deduplication on or off for the topic."""
        self._ask("POST", f"{topic.path}/deduplicationEnabled", on, what=topic)

    def properties(self, topic: PulsarTopicName) -> dict[str, str]:
        """What was written down at the topic, by name."""
        return dict(self._ask("GET", f"{topic.path}/properties", what=topic) or {})

    def set_property(self, topic: PulsarTopicName, name: str, value: str) -> None:
        """Write something down at the topic; what else is there stays."""
        self._ask("PUT", f"{topic.path}/properties", {name: value}, what=topic)

    def retention(self, topic: PulsarTopicName) -> Retention | None:
        """How long messages stay that every subscription has read; None if nobody has said."""
        found = self._ask("GET", f"{topic.path}/retention?applied=true", what=topic)
        if found is None:
            return None
        minutes, size = int(found["retentionTimeInMinutes"]), int(found["retentionSizeInMB"])
        return Retention(
            kept=minutes * _MINUTE if minutes >= 0 else None,
            most_bytes=size * _MEGABYTE if size >= 0 and minutes != 0 else None,
        )

    def set_retention(
        self, topic: PulsarTopicName, kept: timedelta | None, most_bytes: int | None
    ) -> None:
        """Keep messages that were read so long and so many bytes; None is for ever, and any number.

        Pulsar counts in minutes and megabytes: what lies between is rounded up.
        """
        wanted = {
            "retentionTimeInMinutes": -1 if kept is None else math.ceil(kept / _MINUTE),
            "retentionSizeInMB": -1 if most_bytes is None else math.ceil(most_bytes / _MEGABYTE),
        }
        self._ask("POST", f"{topic.path}/retention", wanted, what=topic)

    def compact(self, topic: PulsarTopicName) -> None:
        """Begin to compact every partition; returns before it is done."""
        for part in self._parts(topic):
            self._ask("PUT", f"{part.path}/compaction", what=topic)

    def backlog(self, topic: PulsarTopicName, subscription: str) -> int | None:
        """How many entries a subscription has not acknowledged; None if there is none such.

        Pulsar calls them messages, but a batch of a thousand messages is one entry.
        """
        found = self.stats(topic).get("subscriptions", {}).get(subscription)
        return None if found is None else int(found["msgBacklog"])

    def backlog_messages(self, topic: PulsarTopicName, subscription: str) -> int | None:
        """The same in messages, of entries that are acknowledged in part, too; None if too many.

        The broker reads the whole backlog to count it, so do not ask for this often; it gives up
        after some ten thousand entries of a partition.
        """
        messages = 0
        for part in self._parts(topic):
            path = f"{part.path}/subscription/{quote(subscription, safe='')}/analyzeBacklog"
            found = self._ask("POST", path, what=topic)
            if found["aborted"]:
                return None
            messages += int(found["messages"])
        return messages

    def stats(self, topic: PulsarTopicName) -> dict[str, Any]:
        """What is going on at a topic, of all its partitions together."""
        kind = "partitioned-stats" if self._count(topic) else "stats"
        path = f"{topic.path}/{kind}?getPreciseBacklog=true"
        found: dict[str, Any] = self._ask("GET", path, what=topic)
        return found

    def created(self, topic: PulsarTopicName) -> str | None:
        """When a topic was made, in milliseconds: one that is made again has another time.

        It is kept with the topic, so a broker that loads it again knows it, too. None if the topic
        is not there, or if the broker is too old to say (4.2.4 does).
        """
        count = self.partitions(topic)
        if count is None:
            return None
        # partitions come and go with their topic, and the first one is always there
        first = topic.partition(0) if count else topic
        try:
            found = self._ask("GET", f"{first.path}/stats", what=topic)
        except NotFoundError:
            return None
        return str(found.get("topicCreationTimeStamp") or "") or None

    def internal(self, topic: PulsarTopicName) -> dict[str, Any]:
        """The ledgers, entries and cursors of one partition, or of a topic that has none."""
        found: dict[str, Any] = self._ask("GET", f"{topic.path}/internalStats", what=topic)
        return found

    def last_message(self, topic: PulsarTopicName) -> tuple[int, int, int]:
        """Ledger, entry and place in the batch of a partition's last message.

        The entry is -1 if there is none, and the place if there is no batch.
        """
        found = self._ask("GET", f"{topic.path}/lastMessageId", what=topic)
        return int(found["ledgerId"]), int(found["entryId"]), int(found.get("batchIndex", -1))

    def _names(self, path: str) -> list[str]:
        found = self._ask("GET", path, what=path)
        return found if isinstance(found, list) else []

    def _count(self, topic: PulsarTopicName) -> int:
        count = self.partitions(topic)
        if count is None:
            raise self._missing(topic)
        return count

    def _parts(self, topic: PulsarTopicName) -> list[PulsarTopicName]:
        count = self._count(topic)
        return [topic.partition(number) for number in range(count)] if count else [topic]

    def _missing(self, topic: PulsarTopicName | str) -> NotFoundError:
        if isinstance(topic, str):
            return NotFoundError(
                f"{self._access.admin_url} does not know {topic}",
                remedy="check the option admin_url",
            )
        address = address_of(self._access.url, topic)
        return NotFoundError(
            f"there is no topic at {address}",
            remedy=f"create it with headgate topic create {address}",
        )

    def _ask(
        self, method: str, path: str, body: object = None, *, what: PulsarTopicName | str
    ) -> Any:
        """The answer to one request; a redirection to the broker that owns the topic is followed.

        urllib follows them for reading only.
        """
        url = f"{self._access.admin_url}/admin/v2/{path}"
        for _ in range(_MOST_REDIRECTS):
            try:
                answer = self._send(method, url, body)
            except urllib.error.HTTPError as error:
                where = error.headers.get("Location")
                if error.code not in _REDIRECTS or not where:
                    raise self._refused(error, what) from error
                url = urljoin(url, where)
            except (OSError, http.client.HTTPException) as error:
                raise self._unreachable(error) from error
            else:
                return self._parsed(answer)
        raise PulsarAdminError(
            f"the Pulsar service at {self._access.admin_url} keeps redirecting from broker to "
            "broker",
            reason=Reason.BROKER_UNREACHABLE, remedy="try again when its topics have settled",
        )  # fmt: skip

    def _send(self, method: str, url: str, body: object) -> bytes:
        if self._opener is None:
            self._opener = _opener(self._access)
        headers = {"Accept": "application/json"}
        token = self._access.token()
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with self._opener.open(request, timeout=self._timeout) as answer:
            found: bytes = answer.read()
            return found

    def _parsed(self, answer: bytes) -> Any:
        if not answer.strip():
            return None
        try:
            return json.loads(answer)
        except ValueError:
            if answer.strip() == b"ok":
                return "ok"
            raise PulsarAdminError(
                f"what answers at {self._access.admin_url} is not Pulsar's REST interface",
                reason=Reason.BROKER_UNREACHABLE, remedy="check the option admin_url",
            ) from None  # fmt: skip

    def _refused(self, error: urllib.error.HTTPError, what: PulsarTopicName | str) -> HeadgateError:
        try:
            said = str(json.loads(error.read())["reason"]).splitlines()[0]
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            said = f"HTTP {error.code} {error.reason}"
        if error.code == 404:
            return self._missing(what)
        about = what if isinstance(what, str) else address_of(self._access.url, what)
        if error.code in (401, 403):
            # A token that is wrong gets no reason; one of somebody without the right does.
            known = not said.startswith("HTTP")
            lets_in = f"gives no access to {about}" if known else "refused the login"
            return PulsarAdminError(
                f"the Pulsar service at {self._access.admin_url} {lets_in} ({said})",
                reason=Reason.NOT_AUTHORISED, status=error.code,
                remedy="correct the option token or token_file, or ask for access",
            )  # fmt: skip
        return PulsarAdminError(
            f"the Pulsar service at {self._access.admin_url} refused a request about {about} "
            f"({said})",
            reason=None, status=error.code, remedy="see the broker's log",
        )  # fmt: skip

    def _unreachable(self, error: Exception) -> PulsarAdminError:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        said = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        remedy = "check the address and the option admin_url, or start one with headgate broker "
        remedy += "start pulsar"
        if isinstance(cause, ssl.SSLError):
            said = getattr(cause, "verify_message", "") or cause.reason or said
            remedy = "correct the options tls_trust_certs, tls_cert and tls_key"
        return PulsarAdminError(
            f"no Pulsar service is reachable at {self._access.url}: its REST interface "
            f"{self._access.admin_url} does not answer ({said})",
            reason=Reason.BROKER_UNREACHABLE, remedy=remedy,
        )  # fmt: skip


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *request: Any) -> None:
        return None


def _opener(access: PulsarAccess) -> urllib.request.OpenerDirector:
    # Like Pulsar's own clients it goes through no proxy, whatever the environment says.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirects()]
    if access.admin_url.startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=_context(access)))
    return urllib.request.build_opener(*handlers)


def _context(access: PulsarAccess) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=access.options.get("tls_trust_certs"))
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "tls_cert" in access.options:
        context.load_cert_chain(access.options["tls_cert"], access.options["tls_key"])
    return context
