"""A job that commits together with an order on PostgreSQL, synchronously and asynchronously.

Needs a database in $DIBS_URL, migrated by `dibs db migrate`. It makes a table `orders` there. It prints:

    rolled back: 0 jobs
    committed: 1 jobs
    committed asynchronously: 2 jobs
"""

import asyncio
import os

import psycopg

from dibs import Dibs

URL = os.environ["DIBS_URL"]
jobs = Dibs(URL)


@jobs.task(queue="mail")
def send_receipt(order_id: int) -> str:
    """Write to the customer."""
    return f"receipt for order {order_id}"


INSERT = "insert into orders (item) values (%s) returning id"


def place_order(connection: psycopg.Connection, item: str) -> None:
    """Store an order and its job in whatever transaction the connection is in."""
    row = connection.execute(INSERT, (item,)).fetchone()
    send_receipt.using(connection=connection).enqueue(row[0])


async def place_order_async(item: str) -> None:
    """The same on an asynchronous connection; leaving the block commits."""
    async with await psycopg.AsyncConnection.connect(URL) as connection:
        cursor = await connection.execute(INSERT, (item,))
        row = await cursor.fetchone()
        await send_receipt.using(connection=connection).aenqueue(row[0])


def main() -> None:
    """Roll one order back, commit two."""
    with psycopg.connect(URL) as connection:
        connection.execute("create table if not exists orders (id serial primary key, item text)")
    with psycopg.connect(URL) as connection:
        place_order(connection, "book")
        connection.rollback()
        print(f"rolled back: {jobs.count(queue='mail')} jobs")
        place_order(connection, "book")
    print(f"committed: {jobs.count(queue='mail')} jobs")
    asyncio.run(place_order_async("pen"))
    print(f"committed asynchronously: {jobs.count(queue='mail')} jobs")
    jobs.close()


if __name__ == "__main__":
    main()
