"""SQL on the source server."""

import contextlib
from typing import Any, Iterator

import psycopg
from psycopg import conninfo
from psycopg.rows import dict_row


class Database:
    """One database, as one role. The connection is opened anew when the server has gone away meanwhile."""

    def __init__(self, address: str, **parameters: Any):
        self.dsn = conninfo.make_conninfo(address, **{"connect_timeout": 10, **parameters})
        self._connection: psycopg.Connection | None = None

    def sql(self, *statements: str) -> None:
        """Each text is one transaction of its own, unless it says BEGIN itself."""
        for statement in statements:
            self._open().execute(statement)  # type: ignore[arg-type]

    def query(self, statement: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows as dictionaries."""
        return self._open().execute(statement, parameters or None).fetchall()  # type: ignore[arg-type,return-value]

    def value(self, statement: str, *parameters: Any) -> Any:
        """The one value of the one row; None if there is no row."""
        rows = self.query(statement, *parameters)
        return next(iter(rows[0].values())) if rows else None

    def connect(self) -> psycopg.Connection:
        """A connection of the caller's own, with autocommit; it has to be closed. Nothing is prepared: tables are altered."""
        return psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row, prepare_threshold=None)  # type: ignore[arg-type,return-value]

    @contextlib.contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        """A second session, for transactions that stay open while something else happens."""
        with contextlib.closing(self.connect()) as connection:
            yield connection

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> psycopg.Connection:
        if self._connection is not None and not self._connection.closed:
            try:
                self._connection.execute("select 1")
                return self._connection
            except psycopg.OperationalError:
                self._connection.close()
        self._connection = self.connect()
        return self._connection
