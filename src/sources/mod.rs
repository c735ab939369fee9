//! Sources: one folder per database. Siblings never import each other.

pub mod postgres;
