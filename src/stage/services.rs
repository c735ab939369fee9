//! What a stage asks of the outside: schema ids and topics. The worker answers from registry and
//! broker, tests from memory.

use std::future::Future;

use crate::error::Fault;
use crate::kafka::TopicFacts;
use crate::record::Side;

/// The outside, as far as a stage needs it.
pub trait Services: Send {
    /// The id under which a schema is known to the registry.
    fn schema_id(
        &mut self,
        topic: &str,
        side: Side,
        text: &str,
    ) -> impl Future<Output = Result<u32, Fault>> + Send;

    /// Sees to a topic and says what is known of it.
    fn topic(&mut self, name: &str) -> impl Future<Output = Result<TopicFacts, Fault>> + Send;
}
