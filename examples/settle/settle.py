"""Orders settled by payments, with a deadline: a process function with two inputs."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import headgate as hg


@dataclass
class Order:
    """What was ordered."""

    order_id: str
    amount: float
    created_at: datetime


@dataclass
class Payment:
    """A payment, maybe one of several, for an order."""

    order_id: str
    method: str
    amount: float


@dataclass
class Settled:
    """An order that is paid."""

    order_id: str
    paid: float
    attempts: int
    methods: list[str]


class SettleOrders(hg.Process):
    """Collects payments until they cover the order, or its time is up."""

    order = hg.value_state(Order)
    payments = hg.list_state(Payment, ttl="7 days")
    paid_by = hg.map_state(str, float)
    deadline = hg.timer("event")
    unpaid = hg.side_output(Order)

    def on_orders(self, order: Order, ctx: hg.Context) -> hg.Out[Settled]:
        """Wait for payments; some may have come before the order."""
        self.order.set(order)
        self.deadline.set(order.created_at + timedelta(minutes=30))
        yield from self.settle()

    def on_payments(self, payment: Payment, ctx: hg.Context) -> hg.Out[Settled]:
        """Add a payment."""
        self.payments.append(payment)
        self.paid_by[payment.method] = self.paid_by.get(payment.method, 0.0) + payment.amount
        yield from self.settle()

    def on_deadline(self, ctx: hg.Context) -> hg.Out[Settled]:
        """Give up."""
        order = self.order.get()
        if order is not None:
            ctx.count("unpaid")
            yield self.unpaid(order)
        self.forget()

    def settle(self) -> hg.Out[Settled]:
        """Tell of the order if it is paid."""
        order, paid = self.order.get(), sum(self.paid_by.values())
        if order is not None and paid >= order.amount:
            yield Settled(order.order_id, paid, len(self.payments), sorted(self.paid_by))
            self.deadline.cancel()
            self.forget()

    def forget(self) -> None:
        """Leave nothing of the key."""
        self.order.clear()
        self.payments.clear()
        self.paid_by.clear()


@hg.job("settle_orders", restart=hg.exponential_delay(initial="1 second", maximum="1 minute"))
def settle_orders(job: hg.Job) -> None:
    """Read both topics, and write what is settled and what is not."""
    orders = job.source(
        "orders",
        hg.topic(job.param("orders", "log:data/orders"), schema=Order),
        event_time=hg.event_time("created_at", out_of_orderness="10 seconds"),
    )
    payments = job.source(
        "payments", hg.topic(job.param("payments", "log:data/payments"), schema=Payment)
    )
    settled = job.process(
        "settle",
        SettleOrders(),
        orders=orders.key_by("order_id"),
        payments=payments.key_by("order_id"),
    )
    settled.sink("settled", hg.topic(job.param("settled", "log:data/settled"), key="order_id"))
    settled.side(SettleOrders.unpaid).sink(
        "unpaid", hg.topic(job.param("unpaid", "log:data/unpaid"), key="order_id")
    )
