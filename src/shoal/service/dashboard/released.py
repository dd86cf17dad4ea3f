"""Which rounds count: the released ones. Numbers are missing, and some rounds were abandoned."""

from sqlalchemy import ColumnElement, Connection, func, select

from shoal.service.aggregator.rounds import RELEASED
from shoal.service.store import aggregator as store

_table = store.rounds


def count_released(connection: Connection, name: str, shown: int, width: int) -> dict[int, int]:
    """Return how many rounds up to ``shown`` were released, by bucket of ``width`` numbers."""
    bucket = ((_table.c.number - 1) // width).label("bucket")
    query = select(bucket, func.count()).where(*_released(name, shown)).group_by(bucket)
    return {int(bucket): int(count) for bucket, count in connection.execute(query)}


def nth_released(connection: Connection, name: str, shown: int, n: int, *, newest: bool) -> int:
    """Return the number of the ``n``-th released round, or of the last there is; 0 for none."""
    order = _table.c.number.desc() if newest else _table.c.number
    query = select(_table.c.number).where(*_released(name, shown)).order_by(order).limit(n)
    numbers = connection.scalars(query).all()
    return int(numbers[-1]) if numbers else 0


def _released(name: str, shown: int) -> tuple[ColumnElement[bool], ...]:
    return _table.c.campaign == name, _table.c.state == RELEASED, _table.c.number <= shown
