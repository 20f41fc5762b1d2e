"""A real Kafka broker with users and rights, for tests."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from headgate.brokers import KafkaBroker
from headgate.brokers.process import free_port


class Secured:
    """A broker that asks for a password, looks at rights, and makes what somebody names."""

    def __init__(self, folder: Path) -> None:
        inner, controller = free_port(), free_port()
        self.inner = f"127.0.0.1:{inner}"
        self.servers = f"127.0.0.1:{free_port()}"
        users = ' user_alice="alice-secret" user_bob="bob-secret"'
        settings = {
            "listeners": f"PLAINTEXT://{self.inner},CONTROLLER://127.0.0.1:{controller},"
            f"SASL_PLAINTEXT://{self.servers}",
            "advertised.listeners": f"PLAINTEXT://{self.inner},SASL_PLAINTEXT://{self.servers}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common."
            f"security.plain.PlainLoginModule required{users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice",
            "auto.create.topics.enable": "true",
            "log.cleaner.backoff.ms": "200",
        }
        self.broker = KafkaBroker(folder, settings=settings)
        self.broker.start(port=inner)

    def options(self, user: str, password: str | None = None) -> tuple[str, ...]:
        pairs = {
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
            "sasl.username": user, "sasl.password": password or f"{user}-secret",
        }  # fmt: skip
        return tuple(w for name, value in pairs.items() for w in ("-o", f"{name}={value}"))

    def properties(self, user: str, password: str | None = None) -> dict[str, str]:
        """The same for Kafka's Java client."""
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{login} username="{user}" '
            f'password="{password or f"{user}-secret"}";',
        }

    def grant(self, topic: str, user: str, operation: AclOperation) -> None:
        rule = AclBinding(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{user}", "*",
            operation, AclPermissionType.ALLOW,
        )  # fmt: skip
        admin = AdminClient({"bootstrap.servers": self.inner})
        admin.create_acls([rule])[rule].result(30)
