//! Waits for the Kafka client without keeping it busy.
//!
//! The crate's own `flush` asks librdkafka for no time at all and looks again; librdkafka's sends at
//! once what lingers and sleeps until the last record is acknowledged. Knows no transaction.
//! **Invariant:** this is the only place with unsafe code (`tests/it/house`).
#![allow(unsafe_code, reason = "librdkafka's own flush is not in the crate's API")]

use std::time::Duration;

use rdkafka::bindings::{rd_kafka_flush, rd_kafka_resp_err_t};
use rdkafka::producer::{BaseProducer, Producer as _};

use super::client::Events;

/// Has the client send what it holds, and waits until all is acknowledged or the time is over; whole
/// milliseconds. Says whether all is. Records that could not be delivered count as held until the
/// client's events are served.
pub(super) fn flush(producer: &BaseProducer<Events>, limit: Duration) -> bool {
    let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the pointer is the producer's own and lives as long as the borrow; librdkafka's calls
    // may be made from any thread.
    let outcome = unsafe { rd_kafka_flush(producer.client().native_ptr(), milliseconds) };
    outcome == rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
}
