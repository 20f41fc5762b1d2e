"""Real brokers on this machine for tests and demos: their jars, their process, their folder."""

from headgate.brokers.kafka import KafkaBroker
from headgate.brokers.process import BrokerState, BrokerStatus
from headgate.brokers.pulsar import PulsarBroker

__all__ = ["BrokerState", "BrokerStatus", "KafkaBroker", "PulsarBroker"]
