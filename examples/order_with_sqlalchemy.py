"""A job that commits together with an order that an ORM session stores. Makes shop.db in this folder.

It prints:

    receipt for order 1: book
"""

from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from dibs import Dibs

jobs = Dibs("sqlite:///shop.db")
engine = create_engine("sqlite:///shop.db")


class Base(DeclarativeBase):
    """The tables of this application."""


class Order(Base):
    """One order."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]


@jobs.task(queue="mail")
def send_receipt(order_id: int) -> str:
    """Read the order, which is there for sure: it was committed together with this job."""
    with Session(engine) as session:
        order = session.get_one(Order, order_id)
        return f"receipt for order {order.id}: {order.item}"


def main() -> None:
    """Store an order and its job in one session, then let a worker run the job."""
    jobs.migrate()
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        order = Order(item="book")
        session.add(order)
        session.flush()
        handle = send_receipt.using(connection=session).enqueue(order.id)
    with jobs.worker(concurrency=1):
        print(handle.result(timeout="10s"))
    jobs.close()
    engine.dispose()


if __name__ == "__main__":
    main()
