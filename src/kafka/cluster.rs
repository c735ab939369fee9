//! Which cluster this is.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};

use super::client::{self, Events};
use super::properties::ClientProperties;
use super::topics;
use crate::error::{Code, Fault};

/// Asks for the cluster's id with a consumer's properties; waits at most for `limit`.
///
/// # Errors
/// The properties are wrong, or no broker answers in time.
pub async fn cluster_id(properties: &ClientProperties, limit: Duration) -> Result<String, Fault> {
    let mut config = rdkafka::ClientConfig::new();
    for (name, value) in properties.iter() {
        config.set(name, value);
    }
    let servers = properties.bootstrap_servers().to_owned();
    let consumer: BaseConsumer<Events> = client::make(&config, "consumer")?;
    topics::blocking(move || {
        consumer.client().fetch_cluster_id(limit).ok_or_else(|| {
            Code::KafkaUnreachable
                .fault(format!("no broker answers at bootstrap.servers={servers}"))
        })
    })
    .await
}
