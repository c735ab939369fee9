//! PostgreSQL's text representation of values → neutral scalars.
