//! Tidegate: a change-data-capture worker that speaks Kafka Connect's API.
//!
//! The modules stand in the order in which a change travels:
//!
//! ```text
//! sources → change → plan → record → convert → kafka      the data
//! cli → rest → herder → worker                            the control
//! config, registry, observe, error                        what both need
//! ```
//!
//! `ARCHITECTURE.md` has the map and the rules; `tests/it/house.rs` holds them.

// A task is one future, and whether it may go to another thread is asked of all its parts.
#![recursion_limit = "256"]

pub mod cli;
pub mod rest;
pub mod herder;
pub mod worker;

pub mod sources;
pub mod change;
pub mod filter;
pub mod stage;
pub mod plan;
pub mod record;
pub mod convert;
pub mod registry;
pub mod kafka;

pub mod observe;

pub mod config;
pub mod error;
#[cfg(feature = "sabotage")]
mod sabotage;
