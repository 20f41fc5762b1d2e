"""The user lookup of the tutorials written twice: as a lookup, and as a process function."""

from dataclasses import dataclass

import headgate as hg


@dataclass
class User:
    """A user as the store's changelog has it."""

    id: int
    firstName: str | None
    lastName: str | None
    emailAddress: str | None
    createdAt: int | None
    deletedAt: int | None


@dataclass
class Order:
    """A line of an order."""

    invoiceId: int
    lineItemId: int
    userId: int | None
    itemName: str | None
    price: float | None
    createdAt: int | None


@dataclass
class Enriched(Order):
    """A line of an order with its user."""

    user: User


class UserLookup(hg.Process):
    """Keeps the latest row of each user; what the tutorials write as a CoProcessFunction."""

    user = hg.value_state(User)
    missing = hg.side_output(Order)

    def on_users(self, user: User, ctx: hg.Context) -> None:
        """Remember a user, or forget one who was deleted."""
        if user.deletedAt is None:
            self.user.set(user)
        else:
            self.user.clear()

    def on_orders(self, order: Order, ctx: hg.Context) -> hg.Out[Enriched]:
        """Add the user to an order."""
        user = self.user.get()
        if user is None:
            yield self.missing(order)
        else:
            yield Enriched(**vars(order), user=user)


@hg.job("user_lookup")
def user_lookup(job: hg.Job) -> None:
    """Look the users of orders up in both ways, side by side."""
    changes = hg.topic(job.param("users", "log:data/users"), schema=User)
    orders = job.source("orders", hg.topic(job.param("orders", "log:data/orders"), schema=Order))

    users = job.table("users", changes, key="id", delete_when="deletedAt IS NOT NULL")
    found = orders.lookup("by_lookup", users, on="userId", into="user", missing="side")
    found.sink("enriched", hg.topic(job.param("enriched", "log:data/enriched")))
    found.missing.sink("missing", hg.topic(job.param("missing", "log:data/missing")))

    # the users come first: an order sees every user that came before it or in the same batch
    rows = job.source("user_changes", changes)
    made = job.process(
        "by_process", UserLookup(), users=rows.key_by("id"), orders=orders.key_by("userId")
    )
    made.sink("enriched_too", hg.topic(job.param("enriched_too", "log:data/enriched_too")))
    made.side(UserLookup.missing).sink(
        "missing_too", hg.topic(job.param("missing_too", "log:data/missing_too"))
    )
