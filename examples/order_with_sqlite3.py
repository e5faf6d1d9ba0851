"""A job that commits together with an order, or not at all. Makes shop.db in this folder.

It prints:

    no payment: 0 orders, 0 jobs
    paid: 1 orders, 1 jobs
"""

import sqlite3

from dibs import Dibs

jobs = Dibs("sqlite:///shop.db")


@jobs.task(queue="mail")
def send_receipt(order_id: int) -> str:
    """Write to the customer."""
    return f"receipt for order {order_id}"


def place_order(connection: sqlite3.Connection, item: str, paid: bool) -> None:
    """Store an order and the job that follows from it, in one transaction."""
    with connection:
        order = connection.execute("insert into orders (item) values (?) returning id", (item,)).fetchone()
        send_receipt.using(connection=connection).enqueue(order[0])
        if not paid:
            raise PermissionError("no payment")


def shown(connection: sqlite3.Connection) -> str:
    """How many orders and jobs there are."""
    [orders] = connection.execute("select count(*) from orders").fetchone()
    return f"{orders} orders, {jobs.count(queue='mail')} jobs"


def main() -> None:
    """One order fails, one succeeds."""
    jobs.migrate()
    connection = sqlite3.connect("shop.db")
    connection.execute("create table if not exists orders (id integer primary key, item text)")
    try:
        place_order(connection, "book", paid=False)
    except PermissionError as refused:
        print(f"{refused}: {shown(connection)}")
    place_order(connection, "book", paid=True)
    print(f"paid: {shown(connection)}")
    connection.close()
    jobs.close()


if __name__ == "__main__":
    main()
